"""Differences folded into rows that a person can check.

Begin with `row.py` and `folding.py`.
"""
