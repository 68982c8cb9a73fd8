"""The `aclog` command: command X is in cli/X.py or in the package cli/X."""
