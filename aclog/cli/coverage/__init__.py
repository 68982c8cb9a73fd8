"""The command `aclog coverage`."""
