"""Several modules at once: which are built and in what order, the processes that build them, and how each ended."""
