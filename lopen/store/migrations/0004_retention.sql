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
