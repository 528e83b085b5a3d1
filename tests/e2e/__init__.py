"""The real command, in real repositories, against a real endpoint on loopback."""
