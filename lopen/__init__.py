"""lopen builds a module from its specification: seven steps, one human gate, verified commits."""

__version__ = "0.1.0"
