"""Tests of rules: what a policy is expected to allow and to deny, proved over all requests, never sampled.

Begin with `case.py` and `expectations.py`. The cases are pure; aclog.sources.rule_tests reads files of them, and
`aclog test` and the pytest plugin run them.
"""
