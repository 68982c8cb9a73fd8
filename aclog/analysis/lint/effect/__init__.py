"""What single rules add to a policy, decided over sets of rules."""
