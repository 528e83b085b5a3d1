"""What lopen runs and compares to find out if work holds: test runs, the reader of test files, errors and questions."""
