"""States to show: the newest one, and those of the past that are asked for; each with what is derived from it."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from attrs import define, evolve, field, frozen

from aclog.analysis.policy import Policy
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.arrays import Pause, no_pause
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import StandardAuthorizer
from aclog.console.live_premises import LivePremises, none_unknown
from aclog.console.live_state import LiveState
from aclog.console.pages.asked import BadAskedError
from aclog.console.pages.listing import Listing
from aclog.metalog.clock import current_time_ms
from aclog.metalog.errors import ConfigError, LogError, MetadataError
from aclog.snapshots.deciding_kafka import settled
from aclog.snapshots.image import Image
from aclog.sources.log_mark import ReplacedError

_PAST = 6
"""States of the past that are kept."""


class NotReadyError(Exception):
    """There is no state to show yet."""


@define(eq=False)
class LateListing:
    """A listing that is made when somebody asks for it: it takes longer than all else of a state."""

    _make: Callable[[], Listing] | None
    """None once it is made: it holds on to the state before."""
    _made: Listing | None = field(default=None, init=False)
    _making: threading.Lock = field(factory=threading.Lock, init=False)

    def get(self) -> Listing:
        """Return the listing; who asks for it while it is made waits."""
        found = self._made
        if found is None:
            with self._making:
                found = self._made
                if found is None:
                    assert self._make is not None  # noqa: S101 - until it is made
                    found = self._made = self._make()
                    self._make = None
        return found


class UnknownStateError(BadAskedError):
    """A state of the past that cannot be read or decided; the text may name rules of anybody."""


@frozen(eq=False, kw_only=True)
class State:
    """A state, and what is derived from it. Immutable by convention."""

    image: Image
    policy: Policy
    late: LateListing
    as_of: str | None = None
    """The moment as it was asked for; None for the newest state."""
    whole: Policy | None = None
    """The policy with all rules, if `policy` has only those that a viewer may see."""
    premises: Premises = ALL_KNOWN
    """What is unknown of the settings."""

    @property
    def listing(self) -> Listing:
        """Its rules in order."""
        return self.late.get()

    @property
    def authorizer(self) -> StandardAuthorizer:
        """What decides: always from all rules."""
        return (self.whole or self.policy).authorizer

    def principal(self, text: str) -> str:
        """Return the principal that a text means: as it is if rules name it so, else without the blanks around it."""
        return text if text in self.listing.principals else text.strip()

    @property
    def offset(self) -> int:
        """Its end offset; 0 where there are no offsets."""
        return self.image.end_offset


@define(eq=False, kw_only=True)
class States:
    """The states of a source. Safe for any number of threads."""

    live: LiveState
    settings: Settings
    premises: LivePremises = field(factory=none_unknown)
    """What is unknown of them."""
    pause: Pause = no_pause
    """Called again and again while a state of the past is made, which others may have to wait for."""
    _newest: State | None = field(default=None, init=False)
    _undecided: str = field(default="", init=False)
    """Why the newest state is not shown: which Kafka decides on it is not known, and matters."""
    _past: "OrderedDict[int, State]" = field(factory=OrderedDict, init=False)
    """By the identity of its image: the same text may name another moment later."""
    _version: int = field(default=0, init=False)
    start_ms: int = field(factory=current_time_ms, init=False)
    """A page from before a restart is told that there is something new."""
    _deriving: threading.Lock = field(factory=threading.Lock, init=False)
    _keeping: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self.live.prepare = self._follow
        if self.live.newest is not None:
            self._follow(self.live.newest.image)

    @property
    def version(self) -> str:
        """What changes when the rules that `now` shows do; read it first: a page may be newer than its version."""
        return "none" if self._newest is None else f"{self.start_ms}-{self._version}"

    def now(self) -> State:
        """Return the newest state that is known. Raises NotReadyError: there is none yet; says why."""
        if self._newest is None:
            raise NotReadyError(self._undecided or self.live.trouble or "no state was read yet")
        return self._newest

    def _follow(self, image: Image) -> None:
        """Derive what is shown of the next state; in the thread that reads it, before anybody asks."""
        with self._deriving:
            self.premises.look()
            before = self._newest
            if before is not None and before.image is image:
                return
            try:
                newest = self._derived(image, before)
                newest.late.get()  # before anybody asks
                self._newest, self._undecided = newest, ""
            except ConfigError as error:
                self._newest, self._undecided = None, str(error)
            if before is None or before.image.acls is not image.acls:
                self._version += 1

    def at(self, as_of: str) -> State:
        """Return the state at a moment, the newest one if the text is empty.

        Raises:
            BadAskedError: no such moment. UnknownStateError: nobody knows that state. NotReadyError: as `now`.
            ReplacedError: another log is where that of the newest state was.

        """
        if not as_of:
            return self.now()
        self.pause()
        try:
            image = self.live.past(as_of)
        except ReplacedError:  # which is not the fault of who asks
            raise
        except (ConfigError, LogError) as error:
            raise BadAskedError(f"as of {as_of[:80]}: {error}") from error
        except (MetadataError, OSError) as error:
            raise UnknownStateError(f"as of {as_of[:80]}: {error}") from error
        if image is None:
            return self.now()
        with self._keeping:
            known = self._past.get(id(image))
        if known is not None and known.as_of == as_of:
            return known
        try:
            self.pause()
            state = self._derived(image, known or self._newest, as_of)
        except ConfigError as error:
            raise UnknownStateError(f"as of {as_of[:80]}: {error}") from error
        with self._keeping:
            self._past[id(image)] = state
            self._past.move_to_end(id(image))
            while len(self._past) > _PAST:
                self._past.popitem(last=False)
        return state

    def _derived(self, image: Image, before: State | None, as_of: str | None = None) -> State:
        settings = settled(self.settings, image)  # another one for each state: brokers may have been upgraded
        if before is not None and before.image.acls is image.acls and before.policy.settings == settings:
            # records of other kinds were committed
            return evolve(before, image=image, as_of=as_of)
        acls = image.acls.with_options(documented=settings.documented, cidr=settings.cidr)
        late = LateListing(lambda: self._listing(acls, before, is_past=as_of is not None))
        policy = Policy(acls, settings)
        return State(image=image, policy=policy, late=late, as_of=as_of, premises=self.premises.unknown)

    def _listing(self, acls: AclsImage, before: State | None, *, is_past: bool) -> Listing:
        pause = self.pause if is_past else no_pause
        return Listing.of(acls, pause) if before is None else before.listing.followed_by(acls, pause)
