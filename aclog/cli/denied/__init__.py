"""The command `aclog denied`."""
