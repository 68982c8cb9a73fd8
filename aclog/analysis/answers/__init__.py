"""Answers about one policy or one log: who can, what can, for which intent, and when."""
