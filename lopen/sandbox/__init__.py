"""Running commands that nobody vouches for: bubblewrap, Landlock or nothing, one port.

See docs/reference/sandbox.md.
"""
