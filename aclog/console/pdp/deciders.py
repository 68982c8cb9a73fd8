"""What decides at a moment: made when the state changes, and kept."""

from collections import OrderedDict

from attrs import define, evolve, field

from aclog.authorizer.settings import Settings
from aclog.console.live_state import LiveState
from aclog.console.pdp.decider import Decider
from aclog.console.pdp.errors import BadRequestError, NotReadyError
from aclog.console.pdp.mapping import Mapped
from aclog.metalog.errors import MetadataError
from aclog.snapshots.image import Image

_KEPT = 8


@define(eq=False, kw_only=True)
class Deciders:
    """Makes what decides from the states of a source. Safe for any number of threads."""

    live: LiveState
    settings: Settings
    mapping: Mapped
    max_age: float
    """In seconds: what nobody has confirmed for longer decides nothing."""
    _newest: tuple[Image, Mapped, Decider] | None = field(default=None, init=False)
    _past: "OrderedDict[tuple[str, int], Decider]" = field(factory=OrderedDict, init=False)

    def at(self, as_of: str | None) -> Decider:
        """Return what decides at a moment, None for now.

        Raises:
            NotReadyError: there is no state yet, or it is too old.
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

    def _now(self) -> Decider:
        why = self.why_not_ready()
        seen = self.live.newest
        if why is not None or seen is None:
            raise NotReadyError(why or "no state was read yet")
        known = self._newest
        if known is None or known[0] is not seen.image or known[1] is not self.mapping:
            is_same = known is not None and known[0].acls is seen.image.acls and known[1] is self.mapping
            if known is not None and is_same:  # records of other kinds were committed: what is known stays so
                decider = evolve(known[2], offset=seen.image.end_offset)
            else:
                decider = self._made(seen.image)
            known = self._newest = (seen.image, self.mapping, decider)
        return known[2]

    def _then(self, as_of: str) -> Decider:
        key = (as_of, id(self.mapping))
        known = self._past.get(key)
        if known is None:
            try:
                image = self.live.past(as_of)
            except (MetadataError, OSError) as error:
                raise BadRequestError(f"context.as_of: {error}") from error
            if image is None:
                return self._now()
            known = self._past[key] = self._made(image)
            while len(self._past) > _KEPT:
                self._past.popitem(last=False)
        return known

    def _made(self, image: Image) -> Decider:
        return Decider.of(image.acls, self.settings, self.mapping, image.end_offset)
