"""Claude Code's hooks: the same budgets, circuits and limits guard a session of it.

What `lopen hook EVENT` loads is the standard library and little of it: every tool call waits for it.

See docs/reference/claude-code-hooks.md.
"""
