"""Specifications and plans as text: sections, criteria, verify commands, drift, the plan file."""
