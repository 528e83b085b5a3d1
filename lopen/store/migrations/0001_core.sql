CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    module TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    body TEXT NOT NULL  -- the session without its tree, as JSON
);
CREATE INDEX sessions_by_module ON sessions (module, created_at);
CREATE TABLE components (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    position INTEGER NOT NULL,
    body TEXT NOT NULL,  -- the component without its tasks, as JSON
    PRIMARY KEY (session, id)
);
CREATE TABLE tasks (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    component TEXT NOT NULL,
    position INTEGER NOT NULL,
    state TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, id)
);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    ts TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX events_by_session ON events (session, seq);
CREATE TABLE tool_calls (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    iteration INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    task TEXT,
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,  -- JSON; a long value is replaced by its hash and length
    started_at TEXT NOT NULL,
    seconds REAL,             -- NULL while it runs
    outcome TEXT,             -- NULL while it runs: ok, error, refused, timeout
    content_hash TEXT,        -- of what was read or printed
    error TEXT NOT NULL DEFAULT ''
);
CREATE INDEX tool_calls_by_session ON tool_calls (session, seq);
CREATE TABLE verdicts (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    evidence_hash TEXT NOT NULL,
    scope TEXT NOT NULL,
    subject TEXT NOT NULL,
    given_at TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, evidence_hash)
);
CREATE TABLE criteria (
    module TEXT NOT NULL,
    id TEXT NOT NULL,
    text TEXT NOT NULL,  -- an id stays with its text
    PRIMARY KEY (module, id)
);
CREATE TABLE approvals (
    module TEXT NOT NULL,
    at TEXT NOT NULL,
    body TEXT NOT NULL
);
