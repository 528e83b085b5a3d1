"""Changes to tests, with what must be found in each: `corpus/` holds them as diffs, one file per language."""
