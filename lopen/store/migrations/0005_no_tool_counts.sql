DROP TABLE tool_counts;  -- the calls themselves are in tool_calls
