"""The one truth: `.lopen/state.db`. Schema and migrations, sessions with their history, retention."""
