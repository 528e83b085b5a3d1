CREATE TABLE test_runs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    tree TEXT NOT NULL,  -- the work tree's id when the tests ran
    body TEXT NOT NULL   -- which tests ran, as JSON without secrets
);
CREATE UNIQUE INDEX test_runs_by_tree ON test_runs (session, tree);
