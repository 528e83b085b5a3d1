"""An Anthropic-compatible endpoint on loopback, for replays and tests."""
