"""Claude Code's hooks: the same budgets, circuits and limits guard a session of it.

See docs/reference/claude-code-hooks.md.
"""
