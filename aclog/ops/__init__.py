"""What commands do, as functions on values: lint, tests of rules, reviews, plans, proofs; no flags, no printing.

Begin with `policies.py` (states and their settings), `lint.py` and `plan.py`. `aclog.lint(...)` and similar functions
of the library are thin layers over it (library/reports.py), and so are the commands.
"""
