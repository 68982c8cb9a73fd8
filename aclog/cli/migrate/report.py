"""What `aclog migrate` says of its work: on stdout what was asked for, on stderr what to look at."""

from collections.abc import Iterable, Iterator

from aclog.authorizer.explanation_text import acl_text
from aclog.cli.migrate.log_target import Place
from aclog.terminal.notices import one_line, warn
from aclog.zkstore.migration.access_state import StateChange
from aclog.zkstore.migration.comparison import Comparison
from aclog.zkstore.migration.node_content import LeftOut, StoreState

_MOST_LINES = 100
"""How many differences are listed of each kind; the number of all is always said."""


def report_left_out(left_out: Iterable[LeftOut]) -> None:
    """Every entry that is not carried over, on stderr."""
    for line in _left_out_lines(left_out):
        warn(line)


def _left_out_lines(left_out: Iterable[LeftOut]) -> Iterator[str]:
    return (f"left out: {each}" for each in left_out)


def report_plan(store: str, place: Place, found: StoreState, change: StateChange) -> None:
    """What a migration would do, on stdout."""
    print(f"{store}: {found.state.counts()}")
    for line in _left_out_lines(found.left_out):
        print(one_line(line))
    say_limit(place, found)
    print(f"{place.name}: {change.counts()}")
    for acl in change.removed_acls:
        print(one_line(f"would remove: {acl_text(acl)}"))
    print("dry run: nothing is written")


def say_limit(place: Place, found: StoreState) -> None:
    """What the place cannot take of what was found, on stderr."""
    left = len(found.state.credentials) + len(found.state.tokens)
    if place.limit and left:
        warn(
            f"{len(found.state.credentials)} SCRAM credentials and {len(found.state.tokens)} delegation tokens are not "
            f"carried over: {place.limit}"
        )


def report_comparison(comparison: Comparison) -> int:
    """Whether the ZooKeeper and the log, or what stands for it, are the same, on stdout; the exit code."""
    change = comparison.difference
    for line in _difference_lines(change):
        print(one_line(line))
    known = [each for each in comparison.disagreements if each.is_known]
    for each in comparison.disagreements[:_MOST_LINES]:
        why = " (Kafka 4.3.1: LITERAL * is not for names that begin with *)" if each.is_known else ""
        print(one_line(f"differs: {each}{why}"))
    unknown = len(comparison.disagreements) - len(known)
    same = "the same" if not len(change) else f"{len(change)} differences"
    print(
        f"compared: contents {same}; {comparison.requests} decisions, {unknown} differ"
        + (f", and {len(known)} by what Kafka 4.3.1 decides differently" if known else "")
    )
    return 0 if comparison.is_equal else 1


def _difference_lines(change: StateChange) -> Iterator[str]:
    """What the target lacks, and what it has too many."""
    yield from _listed("only in ZooKeeper", map(acl_text, change.added_acls))
    yield from _listed("not in ZooKeeper", map(acl_text, change.removed_acls))
    names = (f"SCRAM credential of {each.name!r}, mechanism {each.mechanism}" for each in change.credentials)
    yield from _listed("differs", names)
    yield from _listed("differs", (f"delegation token {each.token_id}" for each in change.tokens))


def _listed(what: str, texts: Iterable[str]) -> Iterator[str]:
    count = 0
    for count, text in enumerate(texts, 1):
        if count <= _MOST_LINES:
            yield f"{what}: {text}"
    if count > _MOST_LINES:
        yield f"{what}: {count - _MOST_LINES} more"
