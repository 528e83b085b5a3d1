"""Running commands that nobody vouches for: bubblewrap, Landlock or nothing, one port (contract §13)."""
