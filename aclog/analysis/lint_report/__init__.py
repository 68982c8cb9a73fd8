"""What becomes of lint's findings: suppressed or reported, and in which form."""
