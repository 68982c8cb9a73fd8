"""What commands do, as functions on values: lint, tests of rules, reviews, plans, proofs, usage, sync, migrations.

No flags, no printing: the command line, the console and the library are thin layers over it. Begin with `policies.py`,
`lint.py`, `plan.py` and `usage.py`.
"""
