"""The examination of work: test runs, the reader of test files, errors and questions."""
