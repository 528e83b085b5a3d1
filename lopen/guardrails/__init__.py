"""The checks before each iteration, the counts of tool calls, and the detection of premature stops. Pure."""
