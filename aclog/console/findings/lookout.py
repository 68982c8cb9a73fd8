"""Looks for findings in a thread of its own: one kind after the other, again when the rules have changed."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial

from attrs import define, evolve, field, frozen

from aclog.authorizer.acls_image import AclsImage
from aclog.console.findings.item import Kind
from aclog.console.findings.looked import Finder, Kept, Looked, Subject
from aclog.metalog.clock import elapsed_seconds
from aclog.metalog.errors import MetadataError

_EVERY_S = 0.25
"""Between two rounds."""
_REST = 10
"""A look is followed by a rest of so many times its own time."""
_RETRY_S = 10.0
"""After a look that failed, though nothing has changed."""
_ASKED = 3
"""Earlier states that are kept in mind."""


@frozen(eq=False, kw_only=True)
class _Done:
    """A look, and when there may be another one."""

    acls: AclsImage
    signature: object
    ended: float
    rest: float
    failed: bool

    def is_over(self, now: float, acls: AclsImage, signature: Callable[[], object]) -> bool:
        """Return whether it is time to look again, and there is a reason to."""
        rested = now - self.ended
        if rested < self.rest:
            return False
        return acls is not self.acls or (self.failed and rested >= _RETRY_S) or signature() != self.signature


@define(eq=False, kw_only=True)
class Lookout:
    """The newest findings of a source; owned by the server that starts and stops it. Safe for any number of readers."""

    finders: Mapping[Kind, Finder]
    lacking: Mapping[Kind, str] = field(factory=dict)
    """Kinds that nobody looks for, and which flag it takes."""
    commands: Mapping[Kind, tuple[str, ...]] = field(factory=dict)
    """The command that says the same of a kind, and its flags besides those of the source."""
    now: Callable[[], Subject | None]
    """Returns the newest state; None before the first."""
    clock: Callable[[], float] = elapsed_seconds
    """Returns seconds since some moment."""
    _kept: dict[Kind, Kept] = field(factory=dict, init=False)
    _done: dict[Kind, _Done] = field(factory=dict, init=False)
    _asked: "OrderedDict[int, Subject]" = field(factory=OrderedDict, init=False)
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
        """What changes when there is something new to see."""
        return self._version

    def kept(self, kind: Kind) -> Kept | None:
        """Return what is known of a kind; None before the first look, and if nobody looks."""
        return self._kept.get(kind)

    def age(self, kept: Kept) -> float:
        """Return how many seconds ago the look began that found something."""
        return max(self.clock() - kept.at, 0.0)

    def ask(self, then: Subject) -> None:
        """Keep in mind that somebody asks what an earlier state had of the findings (`Kept.had`)."""
        with self._lock:
            self._asked[then.image.end_offset] = then
            self._asked.move_to_end(then.image.end_offset)
            while len(self._asked) > _ASKED:
                self._asked.popitem(last=False)

    def round(self) -> None:
        """Look for each kind once, if it is time to; and at one earlier state that somebody asks for."""
        for kind, finder in self.finders.items():
            if self._stopping.is_set():
                return
            subject = self.now()
            if subject is None:
                return
            done = self._done.get(kind)
            if done is None or done.is_over(self.clock(), subject.image.acls, partial(_signature, finder)):
                self._look(kind, finder, subject)
        self._answer_one()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.round()
            self._stopping.wait(_EVERY_S)

    def _look(self, kind: Kind, finder: Finder, subject: Subject) -> None:
        began, signature = self.clock(), _signature(finder)
        known = self._kept.get(kind)
        try:
            looked = finder.look(subject)
        except Exception as error:  # noqa: BLE001 - the page says it, and the other kinds are looked for all the same
            kept = evolve(known or Kept(looked=None), error=_why(error))
        else:
            had = {offset: _had(finder, then, looked) for offset, then in self._asked_for().items()}
            kept = Kept(looked=looked, acls=subject.image.acls, offset=subject.image.end_offset, at=began, had=had)
        ended = self.clock()
        self._done[kind] = _Done(
            acls=subject.image.acls,
            signature=signature,
            ended=ended,
            rest=_REST * (ended - began),
            failed=kept.error is not None,
        )
        self._publish(kind, kept)

    def _answer_one(self) -> None:
        for offset, then in self._asked_for().items():
            missing = [kind for kind, kept in self._kept.items() if kept.looked is not None and offset not in kept.had]
            for kind in missing:
                kept = self._kept[kind]
                if kept.looked is not None and not self._stopping.is_set():
                    found = _had(self.finders[kind], then, kept.looked)
                    self._publish(kind, evolve(kept, had={**kept.had, offset: found}))
            if missing:
                return

    def _asked_for(self) -> dict[int, Subject]:
        with self._lock:
            return dict(self._asked)

    def _publish(self, kind: Kind, kept: Kept) -> None:
        self._kept = {**self._kept, kind: kept}
        self._version += 1


def _signature(finder: Finder) -> object:
    try:
        return finder.signature()
    except OSError as error:
        return str(error)


def _had(finder: Finder, then: Subject, looked: Looked) -> frozenset[str] | str:
    try:
        return finder.had(then, looked)
    except Exception as error:  # noqa: BLE001 - as in _look
        return _why(error)


def _why(error: Exception) -> str:
    if isinstance(error, MetadataError | OSError):
        return str(error)
    return f"an error of aclog itself: {type(error).__name__}: {error}"
