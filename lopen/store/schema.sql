CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    module TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    body TEXT NOT NULL  -- the session as JSON
);
CREATE INDEX sessions_by_module ON sessions (module, created_at);
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
CREATE TABLE budgets (
    budget_id TEXT PRIMARY KEY,
    last_updated TEXT NOT NULL,
    body TEXT NOT NULL  -- lopen.limits.budget.BudgetState as JSON
);
CREATE TABLE spend (
    budget_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    model TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    tokens INTEGER NOT NULL,           -- weighted, as budgets count them
    cost_usd REAL NOT NULL,
    unpriced_tokens INTEGER NOT NULL,  -- of models without a known price
    PRIMARY KEY (budget_id, agent, model)
) WITHOUT ROWID;
CREATE TABLE reservations (
    reservation_id TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    body TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX reservations_by_session ON reservations (session);
CREATE TABLE circuits (
    circuit_id TEXT PRIMARY KEY,
    body TEXT NOT NULL  -- lopen.limits.circuit.CircuitState as JSON, bounded
);
CREATE TABLE alerts (
    seq INTEGER PRIMARY KEY,
    alert_id TEXT NOT NULL UNIQUE,
    budget_id TEXT NOT NULL,
    acknowledged INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX alerts_by_budget ON alerts (budget_id);
CREATE TABLE incidents (
    seq INTEGER PRIMARY KEY,
    circuit_id TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX incidents_by_circuit ON incidents (circuit_id);
CREATE TABLE memos (
    key TEXT PRIMARY KEY,
    body TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE archived (
    session TEXT PRIMARY KEY,
    module TEXT NOT NULL,
    created_at TEXT NOT NULL,
    archived_at TEXT NOT NULL,
    highest_task INTEGER NOT NULL,  -- a task's number is never given twice in a module
    body TEXT NOT NULL  -- how it ended, in a few figures, as JSON
) WITHOUT ROWID;
CREATE INDEX archived_by_module ON archived (module, created_at);
CREATE TABLE dropped (
    list TEXT NOT NULL,   -- verdicts, alerts, incidents
    owner TEXT NOT NULL,  -- the session, budget or circuit whose list it is
    count INTEGER NOT NULL,
    total REAL NOT NULL,  -- of what the entries measure; total / count is their mean
    PRIMARY KEY (list, owner)
) WITHOUT ROWID;
CREATE TABLE conversations (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    at_ns INTEGER NOT NULL,  -- wall clock
    kind TEXT NOT NULL,      -- opening, assistant, user, started, stopped, result
    body BLOB NOT NULL,      -- JSON, compressed with zlib
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
CREATE TABLE verifications (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    call INTEGER,       -- the tool call that ran it; NULL where lopen ran it by itself
    task TEXT,
    body TEXT NOT NULL  -- the rest of the record with the output, as JSON without secrets
);
CREATE INDEX verifications_by_session ON verifications (session, seq);
CREATE TABLE approved_texts (
    module TEXT PRIMARY KEY,
    spec_hash TEXT NOT NULL,  -- of the approval that it belongs to
    body BLOB NOT NULL        -- the specification's text, compressed with zlib
) WITHOUT ROWID;
CREATE TABLE test_runs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    tree TEXT NOT NULL,  -- the work tree's id when the tests ran
    body TEXT NOT NULL   -- which tests ran, as JSON without secrets
);
CREATE UNIQUE INDEX test_runs_by_tree ON test_runs (session, tree);
