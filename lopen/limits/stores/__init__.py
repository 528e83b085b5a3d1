"""Where budgets and circuits are kept: SQLite or Redis, behind one protocol."""
