"""`aclog mcp`."""
