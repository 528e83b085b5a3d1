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
CREATE TABLE tool_counts (
    circuit_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    tool TEXT NOT NULL,
    calls INTEGER NOT NULL,
    PRIMARY KEY (circuit_id, agent, tool)
) WITHOUT ROWID;
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
