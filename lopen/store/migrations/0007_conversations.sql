CREATE TABLE conversations (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    at_ns INTEGER NOT NULL,  -- wall clock
    kind TEXT NOT NULL,      -- opening, assistant, user, started, stopped, result
    body BLOB NOT NULL,      -- JSON, compressed with zlib
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
