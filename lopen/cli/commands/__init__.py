"""One file per command, loaded only when the command is called."""
