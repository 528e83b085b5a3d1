"""The workflow as it runs: one session, one iteration, one conversation at a time."""
