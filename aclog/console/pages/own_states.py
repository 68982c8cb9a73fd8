"""States as one viewer may see them: with the rules that speak of him."""

import threading
from weakref import WeakKeyDictionary

from attrs import define, field

from aclog.analysis.policy import Policy
from aclog.console.live_state import LiveState
from aclog.console.login.sights import Sights
from aclog.console.login.visibility import Own, decides_alone, visible_premises, visible_settings
from aclog.console.pages.listing import Listing
from aclog.console.pages.states import LateListing, NotReadyError, State, States


@define(eq=False, kw_only=True)
class OwnStates:
    """The states of a source for one viewer; he is decided from all rules, and shown those that he may see."""

    states: States
    sights: Sights
    own: Own
    _kept: "WeakKeyDictionary[State, State]" = field(factory=WeakKeyDictionary, init=False)
    """By the whole state, for as long as somebody else keeps that: viewers who have gone keep none in memory."""
    _versions: "WeakKeyDictionary[State, str]" = field(factory=WeakKeyDictionary, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    @property
    def live(self) -> LiveState:
        """What is followed."""
        return self.states.live

    @property
    def version(self) -> str:
        """What changes when the rules that he sees do, or when others' rules that decide for him may have."""
        version = self.states.version  # before the state, which may be newer
        whole = self._judged_alone()
        if whole is None:
            return version
        seen = self._seen(whole)
        with self._lock:
            known = self._versions.get(seen)
        if known is None:
            known = seen.image.acls.digest().hex()
            with self._lock:
                self._versions[seen] = known
        return f"{self.states.start_ms}-{known}"

    @property
    def is_version_known(self) -> bool:
        """Whether `version` takes no computing, so that an event loop may ask for it."""
        whole = self._judged_alone()
        if whole is None:
            return True
        with self._lock:
            seen = self._kept.get(whole)
            return seen is not None and seen in self._versions

    def _judged_alone(self) -> State | None:
        """Return the newest state if a version of the viewer's own tells its changes; None if that of all does."""
        try:
            whole = self.states.now()
        except NotReadyError:
            return None
        return whole if decides_alone(whole.image, whole.policy.settings) else None

    def now(self) -> State:
        """Return the newest state as the viewer sees it. Raises as States.now."""
        return self._seen(self.states.now())

    def at(self, as_of: str) -> State:
        """Return the state at a moment as the viewer sees it. Raises as States.at."""
        return self._seen(self.states.at(as_of))

    def _seen(self, whole: State) -> State:
        with self._lock:
            known = self._kept.get(whole)
        if known is not None:
            return known
        image = self.sights.image(whole.image, self.own)
        settings = visible_settings(whole.policy.settings, self.own)
        acls = image.acls.with_options(documented=settings.documented, cidr=settings.cidr)
        seen = State(
            image=image,
            policy=Policy(acls, settings),
            late=LateListing(lambda: Listing.of(acls)),
            as_of=whole.as_of,
            whole=whole.policy,
            premises=visible_premises(whole.premises),
        )
        with self._lock:
            self._kept[whole] = seen
        return seen
