"""Foundations that every room may use: failures, events, time, hashes, files, processes, secrets. Standard library but for the hash."""
