"""The command `aclog usage`."""
