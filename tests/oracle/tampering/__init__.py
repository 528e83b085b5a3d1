"""Tampering with tests: tables of changes, tampered and innocent, per language."""
