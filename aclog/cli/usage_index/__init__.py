"""The command `aclog usage-index`."""
