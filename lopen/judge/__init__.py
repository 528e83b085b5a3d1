"""Judging finished work: what changed and what ran (evidence), how it is judged (rubric), what came of it (verdict)."""
