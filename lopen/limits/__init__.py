"""Budgets, circuits and resource limits: rules as pure functions, counters in a store (contract §7)."""
