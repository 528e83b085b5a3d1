"""The seven steps: the table as data, the machine over it, assessment and decisions. Pure."""
