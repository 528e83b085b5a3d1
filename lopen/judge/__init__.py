"""The judgement of finished work: the change and its runs (evidence), the rule (rubric), the result (verdict)."""
