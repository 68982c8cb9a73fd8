"""Drafts: changes of rules that somebody thinks about, what they would give, and how they are applied."""
