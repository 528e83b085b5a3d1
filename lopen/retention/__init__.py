"""Memory protection: automatic limits on the age and size of everything in `.lopen/`.

See docs/reference/storage.md.
"""
