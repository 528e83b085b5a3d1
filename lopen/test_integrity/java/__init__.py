"""Tests in Java."""
