"""Output of `aclog migrate`: results on stdout, warnings on stderr."""

from collections.abc import Iterable, Iterator

from aclog.authorizer.acl import AclPermissionType, PatternType, StandardAcl, acl_text
from aclog.cli.flags.output import Output
from aclog.cli.migrate.report_rows import COMPARISON_COLUMNS, comparison_rows
from aclog.cli.migrate.target import Target
from aclog.metalog.printable import printable
from aclog.terminal.notices import warn
from aclog.terminal.output import say
from aclog.zkstore.migration.access_state import StateChange
from aclog.zkstore.migration.comparison import Comparison
from aclog.zkstore.migration.node_content import LeftOut, StoreState

_MAX_LINES = 100
"""Differences that are listed per kind; all are counted."""


def report_left_out(left_out: Iterable[LeftOut]) -> None:
    """Warn about every entry that is not migrated."""
    for line in _left_out_lines(left_out):
        warn(line)


def _left_out_lines(left_out: Iterable[LeftOut]) -> Iterator[str]:
    return (f"left out: {each}" for each in left_out)


def report_plan(store: str, target: Target, found: StoreState, change: StateChange) -> None:
    """Print what a migration would do."""
    say(f"{store}: {found.state.counts()}")
    for line in _left_out_lines(found.left_out):
        say(printable(line))
    warn_of_limitation(target, found)
    say(f"{target.name}: {change.counts()}")
    report_removals(change)


def report_removals(change: StateChange) -> None:
    """Print the ACLs that a migration would remove, and that this is a dry run."""
    for acl in change.removed_acls:
        say(printable(f"would remove: {acl_text(acl)}"))
    say("dry run: nothing was written")


def warn_of_limitation(target: Target, found: StoreState) -> None:
    """Warn if the target cannot hold all of the state that was found."""
    omitted = len(found.state.credentials) + len(found.state.tokens)
    if target.limitation and omitted:
        warn(
            f"{len(found.state.credentials)} SCRAM credentials and {len(found.state.tokens)} delegation tokens are not "
            f"migrated: {target.limitation}"
        )


def warn_of_downgrade(acls: Iterable[StandardAcl]) -> None:
    """Warn of ACLs that ZooKeeper holds and brokers before Kafka 2.0 ignore (KIP-290)."""
    prefixed = [acl for acl in acls if acl.pattern_type == PatternType.PREFIXED]
    denied = sum(acl.permission_type == AclPermissionType.DENY for acl in prefixed)
    if prefixed:
        warn(
            f"{len(prefixed)} ACLs are prefixed, {denied} of them DENY: a Kafka before 2.0 ignores them, and allows "
            "what only such a DENY forbids. Do not downgrade that far while they are needed"
        )


def report_comparison(comparison: Comparison, output: Output) -> int:
    """Print how ZooKeeper and the target differ; return the exit code."""
    if output.is_rows:
        output.print_rows(COMPARISON_COLUMNS, comparison_rows(comparison))
    else:
        _print_comparison(comparison)
    return 0 if comparison.is_equal else 1


def _print_comparison(comparison: Comparison) -> None:
    change = comparison.difference
    for line in _difference_lines(change):
        say(printable(line))
    known = [each for each in comparison.disagreements if each.is_known]
    for each in comparison.disagreements[:_MAX_LINES]:
        why = " (Kafka 4.3.1: LITERAL * does not match names that begin with *)" if each.is_known else ""
        say(printable(f"differs: {each}{why}"))
    unknown = len(comparison.disagreements) - len(known)
    same = "the same" if not len(change) else f"{len(change)} differences"
    say(
        f"compared: contents {same}; {comparison.requests} decisions, {unknown} differ"
        + (f", and {len(known)} by a known difference of Kafka 4.3.1" if known else "")
    )


def _difference_lines(change: StateChange) -> Iterator[str]:
    """Yield what only one side has, and credentials and tokens that differ."""
    yield from _listed("only in ZooKeeper", map(acl_text, change.added_acls))
    yield from _listed("not in ZooKeeper", map(acl_text, change.removed_acls))
    names = (f"SCRAM credential of {each.name!r}, mechanism {each.mechanism}" for each in change.credentials)
    yield from _listed("differs", names)
    yield from _listed("differs", (f"delegation token {each.token_id}" for each in change.tokens))


def _listed(what: str, texts: Iterable[str]) -> Iterator[str]:
    count = 0
    for count, text in enumerate(texts, 1):
        if count <= _MAX_LINES:
            yield f"{what}: {text}"
    if count > _MAX_LINES:
        yield f"{what}: {count - _MAX_LINES} more"
