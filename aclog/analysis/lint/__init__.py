"""Lint: ACLs that are ineffective, redundant, or broader than intended."""
