"""Tests of rules: what people expect of a policy, and whether it holds; proved over all requests, never sampled.

A case is one expectation (aclog.analysis.rule_tests.case.Case): `run` judges it on a policy and returns an Outcome; a
failing one has Failures, each with an example. The cases here are pure. Files of them are read by
aclog.sources.rule_tests, which also gives `same_as` and `no_new_access` the policies they compare with (`Other`);
`aclog test` prints outcomes, `aclog test --record` writes files of cases, and the pytest plugin runs them.
"""
