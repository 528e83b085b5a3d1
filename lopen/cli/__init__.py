"""The command line: one file a command, one place that maps failures, one that draws."""
