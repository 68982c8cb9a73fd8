"""Findings of a state, collected in a separate thread or process."""

import multiprocessing
import os
import pickle
import signal
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from enum import StrEnum
from functools import partial
from itertools import chain
from multiprocessing.connection import Connection
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from attrs import evolve, field

from aclog.analysis.lint.finding import Severity
from aclog.analysis.lint_report import LintReport, LocatedFinding, LocatedRule, fingerprint
from aclog.analysis.policy import Policy
from aclog.analysis.rule_tests.case import Case, Outcome, with_ids
from aclog.analysis.rule_tests.results import NEAREST_CHANGE, EachRun, TestedState, failing, failure_lines
from aclog.authorizer.acl import ChangePlace, Origins, StandardAcl, acl_command, acl_text, origin_text
from aclog.authorizer.acls_image import AclsImage, RuleChange, acl_of_content
from aclog.authorizer.index.layout import Pause, no_pause
from aclog.authorizer.settings import Generation
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.metalog.errors import MetadataError, plural
from aclog.metalog.primitives import elapsed_seconds
from aclog.metalog.values import define, frozen
from aclog.planning.planner import Drift, DriftKind
from aclog.snapshots.image import Image

# A finding of any kind, as pages show it.


class Kind(StrEnum):
    """The source of a finding."""

    LINT = "lint"
    UNUSED = "unused"
    DRIFT = "drift"
    TESTS = "tests"


@frozen(kw_only=True)
class Archived:
    """Why a finding is accepted, and until when."""

    reason: str
    expires: date | None
    """The first day (UTC) on which it counts again."""
    where: str
    """File and line that state it."""


@frozen(kw_only=True)
class Item:
    """A finding, its rules, and its fix."""

    kind: Kind
    key: str
    """Identifies the finding over time: it does not depend on lines and offsets."""
    severity: Severity
    name: str
    """The name of the problem, such as `08 shadowed-allow`."""
    text: str
    """Its effect: the access lost, opened, or not as it should be."""
    rules: tuple[LocatedRule, ...] = ()
    place: str = ""
    """Its location, if its rules have none."""
    changes: tuple[RuleChange, ...] = ()
    """Fix it, in this order; none if only a person can decide what was intended."""
    advice: str = ""
    """The fix in words."""
    archived: Archived | None = None
    searched: str = field(init=False, repr=False, eq=False)
    """All of its text, in lower case."""

    @searched.default
    def _searched(self) -> str:
        named = ((each.acl.principal, each.acl.resource_name, each.acl.host, each.places_text()) for each in self.rules)
        return "\n".join((self.name, self.text, self.place, *chain.from_iterable(named))).lower()

    def names(self, principal: str) -> bool:
        """Return whether one of its rules is of a principal with this, in lower case, in its name."""
        if not self.rules:
            return principal in self.searched
        return any(principal in rule.acl.principal.lower() for rule in self.rules)

    def fix(self, place: ChangePlace) -> Iterator[str]:
        """Yield the fix: in words, then as commands."""
        if self.advice:
            yield self.advice
        for change in self.changes:
            command = acl_command(change.acl, add=change.added, place=place)
            yield command or f"{'add' if change.added else 'remove'} {acl_text(change.acl)}"


# The result of a scan of one state.


class Subject(Protocol):
    """A state to scan."""

    @property
    def image(self) -> Image:
        """The whole state."""
        ...

    @property
    def policy(self) -> Policy:
        """Its rules and settings; of several that may decide, by the oldest generation of Kafka."""
        ...

    @property
    def policies(self) -> Mapping[Generation, Policy]:
        """The policies of the generations of Kafka that may decide differently; one, if all decide alike."""
        ...

    @property
    def premises(self) -> Premises:
        """Unknown premises of its decisions."""
        ...


@frozen(kw_only=True)
class Use:
    """The use of a rule, from access logs."""

    is_unused: bool
    """Whether it is known that no access needed the rule."""
    text: str
    """The use in words, such as `never matched`, or why it is unknown."""
    why: str = ""
    """Why it is not judged, without what was seen of this rule."""
    verdict: str = "Not judged"
    """The use in two words."""
    detail: str = ""
    """The reason of the verdict, in a sentence without the window."""
    brief: str = ""
    """The use in a few words, for a cell of a table; empty: `text` is short."""


@frozen(eq=False, kw_only=True)
class Uses:
    """The use of all rules of a state, from access logs."""

    by_rule: Mapping[StandardAcl, Use]
    """The uses of all rules except those that were needed."""
    is_judged: Callable[[StandardAcl], bool]
    """Whether a rule was in that state."""
    last_need: Callable[[StandardAcl], "Need | None"] = lambda _: None
    """Returns the last access that needed a rule; None: it has no time."""
    since: str = ""
    """The begin of the accesses, in ISO 8601."""
    until: str = ""
    """Their end."""
    sources: str = ""
    """The brokers whose logs they are, if these are known."""
    notes: tuple[str, ...] = ()
    """What the accesses lack."""

    @property
    def window(self) -> str:
        """The period of the accesses, and their brokers."""
        return f"{self.since} to {self.until}" + (f"; {self.sources}" if self.sources else "")

    def of(self, acl: StandardAcl) -> Use | None:
        """Return the use of a rule; None: not judged."""
        use = self.by_rule.get(acl)
        if use is not None or not self.is_judged(acl):
            return use
        need = self.last_need(acl)
        if need is None:
            return Use(is_unused=False, text="needed", verdict="Used", detail=NEEDED)
        last = f"last {need.time}" + (f" by {need.principal}" if need.principal else "")
        return Use(is_unused=False, text=f"last used {need.time[:10]}", verdict="Used", detail=f"{last}; {NEEDED}")


NEEDED = "an access would have been decided differently without it"
"""What the use of a rule means that was needed."""


@frozen(kw_only=True)
class Need:
    """An access that needed a rule."""

    time: str
    """In ISO 8601."""
    principal: str = ""
    """Empty if it is not known."""


@frozen(eq=False, kw_only=True)
class LookResult:
    """The findings of one kind."""

    items: tuple[Item, ...]
    archived: tuple[Item, ...] = ()
    summary: str = ""
    """A summary, such as `2 of 40 tests fail`, or the assumptions under which `none` is proven."""
    notes: tuple[str, ...] = ()
    """What was not judged, and other remarks needed to read the result."""
    uses: Uses | None = None


class Finder(Protocol):
    """Finds problems of one kind. Called from one thread."""

    def look(self, subject: Subject) -> LookResult:
        """Return the findings of a state. Raises MetadataError, OSError: they cannot be determined."""
        ...

    def had(self, then: Subject, result: LookResult) -> frozenset[str]:
        """Return the keys of those findings that an earlier state had as well. Raises as `look`."""
        ...

    def signature(self) -> object:
        """Return a version of its other inputs, which changes with them. Raises OSError: one is missing."""
        ...


@frozen(eq=False, kw_only=True)
class LastLook:
    """The newest scan of one kind, and its result."""

    result: LookResult | None
    """The newest that succeeded."""
    error: str | None = None
    """Why the newest one failed."""
    acls: AclsImage | None = None
    """The rules of the state of `result`."""
    offset: int = 0
    """The end offset of the state of `result`."""
    at: float = 0.0
    """When that scan began, by the clock of the scanner."""
    had: Mapping[int, frozenset[str] | str] = field(factory=dict)
    """By end offset of an earlier state: the keys of `result` that it had, or why they are unknown."""


# Drift as findings.


_TEXTS = {
    (DriftKind.MISSING, True): "desired and applied, but now missing: deleted by another writer",
    (DriftKind.MISSING, False): "desired, and never applied",
    (DriftKind.LEFTOVER, True): "managed, no longer desired, and still present",
    (DriftKind.LEFTOVER, False): "no longer desired, and still present",
}


def drift_result(drift: Sequence[Drift], foreign: int, origins: Origins) -> LookResult:
    """Return drift as findings; `foreign`: rules neither desired nor managed; `origins` of desired ones."""
    others = f"; neither desired nor managed: {plural(foreign, 'rule')}" if foreign else ""
    return LookResult(
        items=tuple(_drift_item(each, origins) for each in drift),
        summary=f"{plural(len(drift), 'drift')}{others}" if drift else f"no drift{others}",
    )


def drift_keys_then(then: AclsImage, result: LookResult) -> frozenset[str]:
    """Return the keys of the drift that an earlier state had as well, by the rules desired and managed now."""
    return frozenset(
        each.key
        for each in result.items
        if (then.find(each.rules[0].acl) is None) is (each.name == DriftKind.MISSING.value.lower())
    )


def _drift_item(drift: Drift, origins: Origins) -> Item:
    acl, is_missing = acl_of_content(drift.content), drift.kind is DriftKind.MISSING
    return Item(
        kind=Kind.DRIFT,
        key=f"drift {drift.kind} {drift.content.hex()}",
        severity=Severity.ERROR,
        name=drift.kind.value.lower(),
        text=_TEXTS[drift.kind, drift.owned],
        rules=(LocatedRule(acl=acl, origins=origins.of(acl) if is_missing else ()),),
        changes=(RuleChange(added=is_missing, acl=acl),),
        advice="run aclog plan, then aclog apply, to fix all drift",
    )


# Lint findings.


def lint_result(report: LintReport, notes: tuple[str, ...], pause: Pause = no_pause) -> LookResult:
    """Return a report of lint; suppressed findings are archived. `pause` is called again and again."""
    return LookResult(
        items=tuple(_items(report.findings, pause)),
        archived=tuple(_items(report.suppressed, pause)),
        summary=report.summary(),
        notes=(*report.notes(), *notes),
    )


def lint_keys(report: LintReport) -> frozenset[str]:
    """Return the keys of all that was found, archived or not."""
    return frozenset(map(_key, (*report.findings, *report.suppressed)))


def _key(located: LocatedFinding) -> str:
    return f"lint {located.finding.lint} {fingerprint(located)}"


def _items(findings: Iterable[LocatedFinding], pause: Pause) -> Iterator[Item]:
    for each in findings:
        pause()
        yield _lint_item(each)


def _lint_item(located: LocatedFinding) -> Item:
    finding, by = located.finding, located.suppressed_by
    return Item(
        kind=Kind.LINT,
        key=_key(located),
        severity=finding.severity,
        name=f"{located.lint.id} {located.lint.name}",
        text=f"{located.lint.title}: {finding.lost}",
        rules=located.rules,
        changes=finding.fix,
        advice=finding.advice,
        archived=None if by is None else Archived(reason=by.reason, expires=by.expires, where=by.where),
    )


# Scans for findings in a separate thread: one kind after the other, again when the rules have changed.


_EVERY_S = 0.25
"""The interval between two rounds, in seconds."""
_REST = 10
"""A look is followed by a rest of so many times its own time."""
_RETRY_S = 10.0
"""The delay of a retry after a failed scan, in seconds, even if nothing has changed."""
_MOST_SUBJECTS = 3
"""Earlier states that are kept in mind."""


@frozen(eq=False, kw_only=True)
class _Done:
    """A look, and when there may be another one."""

    acls: AclsImage
    generations: tuple[Generation, ...]
    """Those of Kafka that may have decided."""
    signature: object
    ended: float
    rest: float
    failed: bool

    def is_over(self, now: float, subject: Subject, signature: Callable[[], object]) -> bool:
        """Return whether it is time to look again, and there is a reason to."""
        rested = now - self.ended
        if rested < self.rest:
            return False
        if subject.image.acls is not self.acls or tuple(subject.policies) != self.generations:
            return True
        return (self.failed and rested >= _RETRY_S) or signature() != self.signature


@frozen
class SuppressionsFile:
    """The file from which lint reads what is accepted, and its table there."""

    path: str = "aclog.toml"
    table: str = "lint.ignore"


@define(eq=False, kw_only=True)
class Lookout:
    """The newest findings of a source; owned by the server that starts and stops it. Safe for any number of readers."""

    finders: Mapping[Kind, Finder]
    lacking: Mapping[Kind, str] = field(factory=dict)
    """Kinds that are not scanned, and the flag that enables each."""
    commands: Mapping[Kind, tuple[str, ...]] = field(factory=dict)
    """The equivalent command of a kind, and its flags besides those of the source."""
    suppressions: SuppressionsFile = field(factory=SuppressionsFile)
    """Where a commit adds what is accepted."""
    now: Callable[[], Subject | None]
    """Returns the newest state; None before the first."""
    clock: Callable[[], float] = elapsed_seconds
    """Returns seconds since some moment."""
    _looks: dict[Kind, LastLook] = field(factory=dict, init=False)
    _done: dict[Kind, _Done] = field(factory=dict, init=False)
    _subjects: "OrderedDict[int, Subject]" = field(factory=OrderedDict, init=False)
    """Earlier states by end offset."""
    _version: int = field(default=0, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _stopping: threading.Event = field(factory=threading.Event, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def start(self) -> None:
        """Begin to look."""
        self._thread = threading.Thread(target=self._run, name="findings", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End; a look that is under way is not waited for longer than ten seconds."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(10)

    @property
    def version(self) -> int:
        """A version that changes with the findings."""
        return self._version

    def last_look(self, kind: Kind) -> LastLook | None:
        """Return the last scan of a kind; None before the first one, and if the kind is not scanned."""
        return self._looks.get(kind)

    def age(self, look: LastLook) -> float:
        """Return how many seconds ago the look began that found something."""
        return max(self.clock() - look.at, 0.0)

    def ask(self, then: Subject) -> None:
        """Request the findings of an earlier state (`LastLook.had`)."""
        with self._lock:
            self._subjects[then.image.end_offset] = then
            self._subjects.move_to_end(then.image.end_offset)
            while len(self._subjects) > _MOST_SUBJECTS:
                self._subjects.popitem(last=False)

    def round(self) -> None:
        """Scan for each kind once, if it is due, and one earlier state that was requested."""
        for kind, finder in self.finders.items():
            if self._stopping.is_set():
                return
            subject = self.now()
            if subject is None:
                return
            done = self._done.get(kind)
            if done is None or done.is_over(self.clock(), subject, partial(_signature, finder)):
                self._look(kind, finder, subject)
        self._answer_one()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.round()
            self._stopping.wait(_EVERY_S)

    def _look(self, kind: Kind, finder: Finder, subject: Subject) -> None:
        began, signature = self.clock(), _signature(finder)
        previous = self._looks.get(kind)
        try:
            result = finder.look(subject)
        except Exception as error:  # noqa: BLE001 - the page shows the error, and the other kinds are still scanned
            look = evolve(previous or LastLook(result=None), error=_why(error))
        else:
            had = {offset: _had(finder, then, result) for offset, then in self._earlier_subjects().items()}
            look = LastLook(result=result, acls=subject.image.acls, offset=subject.image.end_offset, at=began, had=had)
        ended = self.clock()
        self._done[kind] = _Done(
            acls=subject.image.acls,
            generations=tuple(subject.policies),
            signature=signature,
            ended=ended,
            rest=_REST * (ended - began),
            failed=look.error is not None,
        )
        self._publish(kind, look)

    def _answer_one(self) -> None:
        for offset, then in self._earlier_subjects().items():
            missing = [kind for kind, look in self._looks.items() if look.result is not None and offset not in look.had]
            for kind in missing:
                look = self._looks[kind]
                if look.result is not None and not self._stopping.is_set():
                    keys = _had(self.finders[kind], then, look.result)
                    self._publish(kind, evolve(look, had={**look.had, offset: keys}))
            if missing:
                return

    def _earlier_subjects(self) -> dict[int, Subject]:
        with self._lock:
            return dict(self._subjects)

    def _publish(self, kind: Kind, look: LastLook) -> None:
        self._looks = {**self._looks, kind: look}
        self._version += 1


def _signature(finder: Finder) -> object:
    try:
        return finder.signature()
    except OSError as error:
        return str(error)


def _had(finder: Finder, then: Subject, result: LookResult) -> frozenset[str] | str:
    try:
        return finder.had(then, result)
    except Exception as error:  # noqa: BLE001 - as in _look
        return _why(error)


def _why(error: Exception) -> str:
    if isinstance(error, MetadataError | OSError):
        return str(error)
    return f"an error of aclog itself: {type(error).__name__}: {error}"


# Work in a separate process: it leaves this one's interpreter to requests.


_P = ParamSpec("_P")
_R = TypeVar("_R")

_NICE = 5
"""Yields to threads that answer requests."""
_LOOK_S = 0.1
_PIECE = 250
"""Values that are read at once: nothing else runs meanwhile."""


class NoAnswerError(MetadataError):
    """The process ended without an answer."""


def in_own_process(stopping: threading.Event, work: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Call a function in a separate process, and return its result; the process ends with it, or at a stop.

    Raises:
        NoAnswerError: the process was killed or stopped; and what the function raises.

    """
    # a separate process rather than a fork: threads of this one may hold locks
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, work, args, kwargs), daemon=True)
    try:
        process.start()
        sender.close()
        while not receiver.poll(_LOOK_S):
            if stopping.is_set():
                raise NoAnswerError("stopped before it was done")
        failed, value = receiver.recv()
    except EOFError:
        raise NoAnswerError("the scanning process was killed, perhaps out of memory") from None
    finally:
        receiver.close()
        if process.pid is not None:
            process.terminate()
            process.join()
    if failed:
        raise value
    return cast("_R", value)


def packed(values: Sequence[object]) -> list[bytes]:
    """Return many values as pieces, for a function whose answer is read piece by piece."""
    return [pickle.dumps(values[start : start + _PIECE]) for start in range(0, len(values), _PIECE)]


def unpacked(pieces: Iterable[bytes], pause: Pause) -> Iterator[Any]:
    """Yield the values that `packed` made pieces of; `pause` is called before each piece."""
    for piece in pieces:
        pause()
        yield from pickle.loads(piece)  # noqa: S301 - made by `packed`


def _answer(sender: Connection, work: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that started it
    os.nice(_NICE)
    try:
        outcome = False, work(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
        outcome = True, error
    with suppress(BrokenPipeError):  # the parent was killed
        sender.send(outcome)


# Tests of rules that fail, as findings.


_EXPLAINED = 50
"""Failing cases that are explained, and whose nearest change is searched for: more of them have one cause."""
_MOST_LINES = 12
"""The most lines of one failing case."""


@frozen(kw_only=True)
class TestedFile:
    """The cases of a file, and the rules under the settings that the file is about."""

    __test__ = False
    """Not a test class for pytest."""

    policies: Mapping[Generation, Policy]
    """By the generation of Kafka that may decide: a case must hold for each."""
    cases: tuple[Case, ...]
    premises: Premises = ALL_KNOWN
    """Unknown premises of the decisions."""
    properties: frozenset[str] = frozenset()
    """The properties of brokers whose values the policies have."""

    def run(self) -> EachRun:
        """Return the runner of the cases: a case that depends on an unknown premise does not pass."""
        return EachRun.of(self.policies, self.premises, self.properties)

    def state(self, origins: Origins, place: ChangePlace) -> TestedState:
        """Return what reports know of the rules."""
        numbered = {generation: with_ids(policy) for generation, policy in self.policies.items()}
        first = next(iter(numbered.values()))
        policies = numbered if len(numbered) > 1 else {}
        return TestedState(policy=first, policies=policies, origins=origins, place=place)


def tests_result(files: Sequence[TestedFile], origins: Origins, place: ChangePlace) -> LookResult:
    """Return the failing cases. Raises MetadataError: the state that a case compares with cannot be read."""
    items: list[Item] = []
    for file in files:
        run = file.run().run
        outcomes = [run(case) for case in file.cases]
        failed = failing(outcomes)
        state = file.state(origins, place) if failed else None
        items += (_test_item(each, state if len(items) + at < _EXPLAINED else None) for at, each in enumerate(failed))
    total = sum(len(file.cases) for file in files)
    passed = total - len(items)
    return LookResult(items=tuple(items), summary=f"{passed:,} of {total:,} tests pass")


def failing_keys(files: Sequence[TestedFile], among: frozenset[str]) -> frozenset[str]:
    """Return which of some cases, by key, fail. Raises MetadataError: as `tests_result`."""
    return frozenset(
        key
        for file in files
        for run in (file.run().run,)
        for case in file.cases
        if (key := _test_key(case)) in among and not run(case).passed
    )


def _test_key(case: Case) -> str:
    return f"tests {case.origin.file} {case.test} {case.text}"


def _test_item(outcome: Outcome, state: TestedState | None) -> Item:
    case, fix = outcome.case, list[str]()
    if state is None:
        lines = [f"expected: {case.text}", *(f"found: {each.actual}" for each in outcome.failures[:1])]
    else:
        lines = [line.strip() for line in failure_lines(outcome, state)][1:]
        if NEAREST_CHANGE in lines:
            at = lines.index(NEAREST_CHANGE)
            lines, fix = lines[:at], lines[at:]
    rules = dict.fromkeys(each.decided_by for each in outcome.failures if isinstance(each.decided_by, StandardAcl))
    return Item(
        kind=Kind.TESTS,
        key=_test_key(case),
        severity=Severity.ERROR,
        name=case.test,
        text="\n".join(lines[:_MOST_LINES]),
        rules=tuple(LocatedRule(acl=acl, origins=() if state is None else state.origins.of(acl)) for acl in rules),
        place=origin_text(case.origin),
        advice="\n".join(fix),
    )
