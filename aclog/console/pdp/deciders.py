"""What decides at a moment: made when the state changes, and kept."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from attrs import define, evolve, field

from aclog.authorizer.settings import Settings
from aclog.console.live_premises import LivePremises, none_unknown
from aclog.console.live_state import LiveState
from aclog.console.pdp.decider import Decider
from aclog.console.pdp.envoy import path_warning
from aclog.console.pdp.errors import BadRequestError, NotReadyError
from aclog.console.pdp.mapping import Mapped
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.snapshots.deciding_kafka import settled
from aclog.snapshots.image import Image
from aclog.sources.log_mark import ReplacedError

_KEPT = 8


@define(eq=False, kw_only=True)
class Deciders:
    """Makes what decides from the states of a source. Safe for any number of threads."""

    live: LiveState
    settings: Settings
    mapping: Mapped
    """Read once for each question: it may be replaced at any time."""
    max_age: float
    """In seconds: what nobody has confirmed for longer decides nothing."""
    premises: LivePremises = field(factory=none_unknown)
    """What is unknown of the settings."""
    warn: Callable[[str], None] = field(default=lambda _: None)
    """Called with what is odd of the mapping and the first state that is decided by it."""
    _warned_of: Mapped | None = field(default=None, init=False)
    _newest: tuple[Image, Decider] | None = field(default=None, init=False)
    _past: "OrderedDict[int, tuple[Image, Decider]]" = field(factory=OrderedDict, init=False)
    """By the identity of an image, which is kept with it."""
    _keeping: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self.live.prepare = self._prepare

    def at(self, as_of: str | None) -> Decider:
        """Return what decides at a moment, None for now.

        Raises:
            NotReadyError: there is no state yet, it is too old, or another log is where its log was.
            BadRequestError: no such moment.

        """
        return self._now() if as_of is None else self._then(as_of)

    def why_not_ready(self) -> str | None:
        """Return why nothing can be decided now; None if it can."""
        age = self.live.age()
        if age is None:
            return self.live.trouble or "no state was read yet"
        if age > self.max_age:
            return f"nobody has confirmed the state for {age:.0f} s: {self.live.trouble or 'the source is silent'}"
        return None

    def replace_mapping(self, mapping: Mapped) -> None:
        """Decide by another mapping from now on."""
        self.mapping = mapping
        if (seen := self.live.newest) is not None:
            self._warn(seen.image)

    def _prepare(self, image: Image) -> None:
        self.premises.look()
        self._warn(image)

    def _warn(self, image: Image) -> None:
        mapping = self.mapping
        if mapping.envoy is None or self._warned_of is mapping:
            return
        with suppress(NotReadyError):  # which each answer says
            warning = path_warning(self._made(image, mapping))
            self._warned_of = mapping
            if warning is not None:
                self.warn(warning)

    def _now(self) -> Decider:
        why, seen, mapping = self.why_not_ready(), self.live.newest, self.mapping
        if why is not None or seen is None:
            raise NotReadyError(why or "no state was read yet")
        image, known = seen.image, self._newest
        if known is not None and known[1].mapping is mapping:
            if known[0] is image:
                return known[1]
            if known[0].acls is image.acls and self._settled(known[0]) == self._settled(image):
                # records of other kinds were committed: what is known stays so
                decider = evolve(known[1], offset=image.end_offset)
                self._newest = (image, decider)
                return decider
        decider = self._made(image, mapping)
        self._newest = (image, decider)
        return decider

    def _then(self, as_of: str) -> Decider:
        why, mapping = self.why_not_ready(), self.mapping
        if why is not None:
            raise NotReadyError(why)
        try:
            image = self.live.past(as_of)
        except ReplacedError as error:  # which is not the fault of who asks
            raise NotReadyError(f"context.as_of: {error}") from error
        except (MetadataError, OSError) as error:
            raise BadRequestError(f"context.as_of: {error}") from error
        if image is None:
            return self._now()
        with self._keeping:
            known = self._past.get(id(image))
            if known is None or known[1].mapping is not mapping:
                known = self._past[id(image)] = (image, self._made(image, mapping))
            self._past.move_to_end(id(image))
            while len(self._past) > _KEPT:
                self._past.popitem(last=False)
            return known[1]

    def _made(self, image: Image, mapping: Mapped) -> Decider:
        return Decider.of(image.acls, self._settled(image), mapping, image.end_offset, self.premises.unknown)

    def _settled(self, image: Image) -> Settings:
        """Return the settings by which a state is decided: each by the Kafka that its brokers run.

        Raises:
            NotReadyError: which one decides is not stated, and matters.

        """
        try:
            return settled(self.settings, image)
        except ConfigError as error:
            raise NotReadyError(str(error)) from error
