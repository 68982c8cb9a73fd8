"""`aclog help`, and pages about commands: what the terminal, the manual and the documentation show of the same tree."""
