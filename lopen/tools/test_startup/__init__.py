"""What Python and Node run at their start in the clean room; `lopen.tools.run_records` puts it there."""
