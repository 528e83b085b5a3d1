"""What every other room may import."""
