"""Circuits: rules that stop calls which repeat, fail or come too fast."""
