"""Budgets, circuits and resource limits: rules as pure functions, counters in a store.

See docs/reference/budgets-and-circuits.md.
"""
