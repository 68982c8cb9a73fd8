"""Outcomes as JSON objects: the lines of `aclog test --format jsonl` (docs/testing-rules.md)."""

from typing import Protocol

from aclog.analysis.by_generation import generation_object
from aclog.analysis.regions.region_json import JsonObject, decided_by_object, region_object, request_object
from aclog.analysis.rule_tests.failure_text import TestedState
from aclog.analysis.rule_tests.mutation_testing import MutationResult
from aclog.analysis.rule_tests.nearest_change import nearest_change
from aclog.analysis.rule_tests.outcome import Failure, Outcome
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acl_command import acl_command
from aclog.authorizer.origin import Origins, origin_object


class Tested(Protocol):
    """Knows what a case was run on."""

    @property
    def state(self) -> TestedState:
        """What the case was run on; asked for only if it fails."""
        ...


def outcome_object(outcome: Outcome, tested: Tested, *, nearest: bool = True) -> JsonObject:
    """Return a case, whether it holds, and if not, why not; with `nearest` also what would mend it."""
    case = outcome.case
    line: JsonObject = {
        "test": case.test,
        "file": case.origin.file,
        "line": case.origin.line,
        "case": case.text,
        "verdict": "PASSED" if outcome.passed else "FAILED",
    }
    if outcome.passed:
        return line
    state = tested.state
    line["failures"] = [_failure(each, state.origins) for each in outcome.failures]
    if not nearest:
        return line
    changes = [
        {
            "change": "add" if change.added else "remove",
            "rule": stated_object(change.acl, state.origins),
            "command": acl_command(change.acl, add=change.added, place=state.place),
        }
        for change in nearest_change(case, state.failing(outcome))
    ]
    return {**line, "nearest": changes}


def mutant_object(result: MutationResult, origins: Origins) -> JsonObject:
    """Return a mutant and whether a case fails with it; of one that survives, what it changes."""
    mutant = result.mutant
    line: JsonObject = {
        "mutant": mutant.mutation.value,
        "rule": stated_object(mutant.rule, origins),
        "becomes": None if mutant.becomes is None else decided_by_object(mutant.becomes),
        "verdict": "KILLED" if result.killed else "SURVIVED",
    }
    if result.changed is None:
        return line
    return {**line, "change": result.changed.direction.value, "region": region_object(result.changed.region)}


def stated_object(rule: StandardAcl | str | None, origins: Origins) -> JsonObject | str | None:
    """Return a rule with the first place that states it, or another reason of a decision."""
    found = decided_by_object(rule)
    if not isinstance(rule, StandardAcl) or not isinstance(found, dict):
        return found
    return {**found, **(origin_object(origins.of(rule)[0]) if origins.of(rule) else {})}


def _failure(failure: Failure, origins: Origins) -> JsonObject:
    return {
        "found": failure.found,
        "request": None if failure.request is None else request_object(failure.request),
        "rule": stated_object(failure.decided_by, origins),
        "region": None if failure.region is None else region_object(failure.region),
        **generation_object(failure.only),
    }
