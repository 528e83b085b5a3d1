"""The ordered table of checks before every iteration, and the validator of every end of a turn. Pure."""
