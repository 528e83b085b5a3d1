"""The one truth: `.lopen/state.db`. Sessions with their history, and automatic limits on the size of `.lopen/`."""

SCHEMA = 12  # of `schema.sql`; a database with another one is not used
