"""Suggested rules over a synthetic year: what they deny that the year then does."""
