CREATE TABLE verifications (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    call INTEGER,       -- the tool call that ran it; NULL where lopen ran it by itself
    task TEXT,
    body TEXT NOT NULL  -- the rest of the record with the output, as JSON without secrets
);
CREATE INDEX verifications_by_session ON verifications (session, seq);
