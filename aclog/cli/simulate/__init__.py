"""The command `aclog simulate`."""
