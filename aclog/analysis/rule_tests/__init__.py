"""Tests of ACLs: expectations of a policy, proved over all requests, never sampled.

A case is one expectation (aclog.analysis.rule_tests.case.Case): `run` evaluates it on a policy and returns an Outcome;
a failing outcome has Failures, each with an example. The cases here are pure. aclog.sources.rule_tests reads files of
them
and provides the policies with which `same_as` and `no_new_access` compare (`Other`); `aclog test` prints outcomes,
`aclog test --record` writes files of cases, and the pytest plugin runs them.
"""
