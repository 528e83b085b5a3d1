"""Rendering: events as lines, the picture of the live view, and the views."""
