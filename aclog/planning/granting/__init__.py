"""Granting and revoking by intent: the least rules that let a client do its work, and what takes that away again."""
