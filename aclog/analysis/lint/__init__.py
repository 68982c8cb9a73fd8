"""Lint: ACLs that are ineffective, redundant, or broader than intended.

Begin with `linting.py` (runs all lints) and `finding.py` (the catalogue).
"""
