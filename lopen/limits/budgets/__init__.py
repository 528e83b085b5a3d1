"""Budgets: what was used of what is allowed, in tokens, requests and USD."""
