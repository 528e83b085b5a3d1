"""Run untrusted commands: one port with bubblewrap, Landlock or no confinement behind it (docs/reference/sandbox.md)."""
