"""The command line: one file per command, one module that reports failures, one package that draws."""
