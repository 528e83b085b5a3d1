"""The Model Context Protocol: tools of the person's own servers, and lopen as a server. See docs/reference/mcp.md."""
