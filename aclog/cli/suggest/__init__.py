"""The command `aclog suggest`."""
