"""Lint: ACLs that are ineffective, redundant, or broader than intended.

Begin with `finding.py` (what a lint rule declares, and all of them), then `single.py` and `related.py` (the rules);
`../lint_report.py` runs them over a policy.
"""
