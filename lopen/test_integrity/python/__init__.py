"""Tests in Python: pytest and unittest."""
