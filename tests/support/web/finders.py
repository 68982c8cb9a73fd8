"""Finders whose findings a test holds in its hands."""

from collections.abc import Callable, Mapping

from attrs import define, evolve, field

from aclog.analysis.lint.finding import Severity
from aclog.analysis.lint_report import LocatedRule
from aclog.authorizer.acl import FileOrigin, StandardAcl
from aclog.console.findings import Archived, Finder, Item, Kind, Lookout, LookResult, Subject
from aclog.console.pages.states import Console, NotReadyError, State


@define(eq=False)
class HeldFinder:
    """Finds what a test sets; an error is raised."""

    answer: LookResult | Exception
    before: frozenset[str] | Exception = frozenset()
    """What an earlier state had."""
    files: object = None
    """What changes with its files."""
    during: Callable[[], object] = lambda: None
    """Called while it looks."""
    looks: list[int] = field(factory=list)
    """How many rules there were, at each look."""

    def look(self, subject: Subject) -> LookResult:
        self.looks.append(len(subject.image.acls))
        self.during()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def had(self, then: Subject, newest: LookResult) -> frozenset[str]:
        if isinstance(self.before, Exception):
            raise self.before
        return self.before

    def signature(self) -> object:
        if isinstance(self.files, Exception):
            raise self.files
        return self.files


@define
class Clock:
    """A clock that a test sets."""

    seconds: float = 100.0

    def __call__(self) -> float:
        return self.seconds


def item(
    name: str = "08 shadowed",
    *acls: StandardAcl,
    kind: Kind = Kind.LINT,
    severity: Severity = Severity.WARNING,
    archived: Archived | None = None,
    advice: str = "",
) -> Item:
    """A finding about some rules, which stand in a file."""
    rules = tuple(LocatedRule(acl=acl, origins=(FileOrigin(file="a.yaml", line=7),)) for acl in acls)
    return Item(
        kind=kind, key=f"{kind} {name} {acls}", severity=severity, name=name, text=f"{name} is wrong", rules=rules,
        archived=archived, advice=advice,
    )  # fmt: skip


def watched(
    console: Console,
    finders: Mapping[Kind, Finder],
    lacking: Mapping[Kind, str] | None = None,
    clock: Clock | None = None,
) -> Console:
    """A console with a lookout that looks when it is told to (`Lookout.round`)."""

    def now() -> State | None:
        try:
            return console.states.now()
        except NotReadyError:
            return None

    lookout = Lookout(finders=finders, lacking=lacking or {}, now=now, clock=clock or Clock())
    return evolve(console, lookout=lookout)
