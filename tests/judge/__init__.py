"""Tests of the oracle room."""
