"""Files of tests of rules: YAML beside the rules, and JSON lines of requests with their decisions."""
