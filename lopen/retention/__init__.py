"""Memory protection: what is kept, for how long and how large; all of it by itself.

See docs/reference/storage.md.
"""
