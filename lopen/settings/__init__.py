"""Configuration: the schema with its limits and trust, the sources in order, and where each value came from."""
