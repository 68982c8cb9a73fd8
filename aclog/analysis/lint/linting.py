"""Linting: all findings about a policy."""

from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from aclog.analysis.lint import holders, names
from aclog.analysis.lint.finding import ALL, Finding
from aclog.analysis.lint.redundant import Redundancy
from aclog.analysis.lint.rule_table import LintContext, RuleTable
from aclog.analysis.policy import Policy

Finder: TypeAlias = Callable[[RuleTable, LintContext], Iterator[Finding]]

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many lints are done, and of how many."""

_FINDERS: Mapping[str, Finder] = MappingProxyType(
    {
        "01": names.prefixed_star,
        "02": names.glob_in_name,
        "03": names.host_not_an_address,
        "04": names.cidr_host,
        "05": names.principal_without_type,
        "06": names.near_miss_principal,
        "07": names.unknown_principal_type,
        "12": names.unsupported_operation,
        "13": holders.consumer_without_group,
        "14": holders.transaction_without_write,
        "15": holders.idempotent_write,
        "16": names.everyone_may_write,
        "17": names.cluster_rights,
        "18": holders.no_such_name,
        "19": holders.shared_group,
        "20": holders.shared_transactional_id,
        "21": holders.prefix_without_separator,
        "22": holders.closes_open_resource,
        "23": names.name_below_star,
        "24": names.illegal_topic_name,
        "25": holders.many_literals,
        "27": names.everyone_reaches_far,
    }
)
"""By id, but for those that share their work (aclog.analysis.lint.redundant)."""


def no_progress(_done: int, _of: int) -> None:
    """Tell nobody."""


def no_note(_text: str) -> None:
    """Tell nobody."""


def lint(
    policy: Policy,
    context: LintContext | None = None,
    *,
    select: Collection[str] = ALL,
    progress: Progress = no_progress,
    note: Callable[[str], None] = no_note,
) -> Iterator[Finding]:
    """Yield what lints say about the rules of a policy, lazily: by id of the lint, then in the order of the index.

    `select` are the ids of the lints to run. `note` is told what was left undecided, if anything was: the shape of the
    rules would take too long. Lint 26 yields nothing here: what a pattern covered earlier is in a history
    (aclog.sources), not in a policy.
    """
    table, lint_context = RuleTable.of(policy), context or LintContext()
    redundancy = Redundancy(table)
    finders: dict[str, Finder] = {
        **_FINDERS,
        "08": redundancy.shadowed,
        "09": redundancy.overridden,
        "10": redundancy.dead,
        "11": redundancy.implied,
    }
    numbers = [number for number in sorted(finders) if number in select]
    for done, number in enumerate(numbers):
        progress(done, len(numbers))
        yield from finders[number](table, lint_context)
        if number == "10" and redundancy.undecided:
            note(f"lint 10: DENY rules not judged, since it would take too long: {redundancy.undecided:,}")
    progress(len(numbers), len(numbers))
