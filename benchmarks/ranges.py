"""Decisions where the hosts of rules are ranges, beside the same rules without: the same requests, in one process.

A fifth of the rules have a range for a host, of seven ranges of five lengths that lie within one another or elsewhere:
most principals have some, and so has `User:*`. Each state is measured on both in turn; the best pass counts.
"""

import gc
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from attrs import evolve, frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.audit import AuditHook
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import StandardAuthorizer
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer
from aclog.usage.decisions.intervals import AclIntervals, rule_table
from benchmarks import shapes
from benchmarks.estates.compare import write_base
from benchmarks.estates.files import write_changes, write_requests
from benchmarks.estates.shape import Asked, changes, requests
from benchmarks.estates.side import Side, pass_ns
from benchmarks.estates.ten_shapes import TEN
from benchmarks.report import Row

RANGES = (
    "10.0.0.0/8", "10.20.0.0/16", "10.20.0.0/24", "192.168.0.0/16", "10.16.0.0/12", "10.20.1.0/24", "10.20.0.128/25",
)  # fmt: skip
_SHARE = 5
"""One rule in so many has a range."""
_IN_BULK = 5
"""Batches have so many times the requests."""
_TARGET = 1 / 1.5
"""With ranges, a decision takes at most 1.5 times as long."""


@frozen(kw_only=True)
class _Estate:
    """One estate: its files, and whether hosts may be ranges."""

    side: Side
    cidr: bool

    def authorizer(self, image: AclsImage, audit: AuditHook | None = None) -> StandardAuthorizer:
        authorizer = StandardAuthorizer(cidr=self.cidr)
        authorizer.configure({})
        authorizer.set_audit(audit)
        authorizer.load(image)
        authorizer.complete_initial_load()
        return authorizer

    def first(self, *, changed: bool, audit: AuditHook | None = None) -> float:
        """Return ns a decision of a first pass: nothing is remembered of the image, and no text was ever seen."""
        calls, authorizer = self.side.calls(), self.authorizer(self.side.fresh(changed=changed), audit)
        gc.collect()
        gc.freeze()
        return pass_ns(authorizer, calls)

    def bulk(self, asked: list[Asked]) -> Callable[[], float]:
        """Return what measures a batch of accesses that were never seen, in ns an access; the index is there."""
        image = self.side.fresh(changed=False)
        intervals = AclIntervals.of_table(rule_table(image))
        columns = [
            pa.array([each.principal for each in asked]),
            pa.array([each.host for each in asked]),
            pa.array([AclOperation(each.operation).name for each in asked]),
            pa.array([ResourceType(each.resource_type).name for each in asked]),
            pa.array([each.name for each in asked]),
        ]
        settings = Settings(cidr=self.cidr)
        index = BulkAuthorizer.of(intervals, settings).index

        def measured() -> float:
            authorizer = BulkAuthorizer(index=index, settings=settings, known_from=intervals.known_from)
            gc.collect()
            start = time.thread_time_ns()
            authorizer.decide(columns)
            return (time.thread_time_ns() - start) / len(asked)

        return measured


def _ranged(rules: list[StandardAcl]) -> list[StandardAcl]:
    return [
        evolve(acl, host=RANGES[number // _SHARE % len(RANGES)]) if number % _SHARE == 0 else acl
        for number, acl in enumerate(rules)
    ]


def _write(directory: Path, rules: list[StandardAcl], asked: list[Asked], count: int) -> Side:
    directory.mkdir()
    write_requests(directory / "requests", asked)
    write_changes(directory / "changes", changes(rules, count, seed=2))
    write_base(AclsImage.from_columns(shapes.columns(iter(rules))), directory)
    return Side(directory, 0)


def run(rounds: int, request_count: int) -> Iterator[Row]:
    """Yield rows: with ranges beside without; and, where there are none, ranges turned on beside turned off."""
    rules = list(next(shape for shape in TEN if shape.name == "mix").rules(""))
    asked = requests(rules, request_count, seed=1)
    with TemporaryDirectory() as scratch:
        plain = _write(Path(scratch, "plain"), rules, asked, request_count)
        ranged = _write(Path(scratch, "ranged"), _ranged(rules), asked, request_count)
        many = requests(rules, _IN_BULK * request_count, seed=3)
        off, on = _Estate(side=plain, cidr=False), _Estate(side=plain, cidr=True)
        both = _Estate(side=ranged, cidr=True)
        _check(off, both)
        where = f"{len(rules):,} rules, a fifth with ranges"
        for what, measured in _STATES.items():
            ours, theirs = _alternately(partial(measured, both), partial(measured, off), rounds)
            yield Row(what=f"{where}: {what}", ours=ours, theirs=theirs, unit="ns", target=_TARGET)
        ours, theirs = _alternately(both.bulk(many), off.bulk(many), rounds)
        yield Row(what=f"{where}: in bulk", ours=ours, theirs=theirs, unit="ns", target=_TARGET)
        for what, measured in _STATES.items():
            ours, theirs = _alternately(partial(measured, on), partial(measured, off), rounds)
            yield Row(what=f"no ranges, but turned on: {what}", ours=ours, theirs=theirs, unit="ns")
        ours, theirs = _alternately(on.bulk(many), off.bulk(many), rounds)
        yield Row(what="no ranges, but turned on: in bulk", ours=ours, theirs=theirs, unit="ns")


def _check(off: _Estate, both: _Estate) -> None:
    """Raise AssertionError unless ranges decide something."""
    counts = []
    for estate in (off, both):
        authorizer = estate.authorizer(estate.side.fresh(changed=False))
        counts.append(sum(authorizer.authorize(*call)[0].value == "ALLOWED" for call in estate.side.calls()))
    if counts[0] == counts[1]:
        raise AssertionError("ranges decide nothing")


def _hook(*_decision: object) -> None:
    return None


_STATES: dict[str, Callable[[_Estate], float]] = {
    "for the first time": lambda estate: estate.first(changed=False),
    "each named for an audit hook": lambda estate: estate.first(changed=False, audit=_hook),
    "after changes": lambda estate: estate.first(changed=True),
    "after changes, each named": lambda estate: estate.first(changed=True, audit=_hook),
}


def _alternately(ours: Callable[[], float], theirs: Callable[[], float], rounds: int) -> tuple[float, float]:
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
