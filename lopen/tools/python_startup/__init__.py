"""What Python runs at its start in the clean room; `lopen.tools.run_records` puts it there."""
