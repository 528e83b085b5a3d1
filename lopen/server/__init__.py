"""The server of `lopen serve`: REST API, event streams, metrics and the dashboard. See docs/reference/server.md."""
