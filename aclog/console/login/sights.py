"""What viewers see of the newest state, kept until the state changes."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from weakref import WeakKeyDictionary

from attrs import define, field

from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import StandardAuthorizer
from aclog.console.login.visibility import All, Own, authorizer_of, visibility, visible_image
from aclog.metalog.errors import ConfigError
from aclog.snapshots.deciding_kafka import settled
from aclog.snapshots.image import Image

_SIGHTS, _VIEWERS = 10_000, 256
"""How many are kept: of principals at addresses, and of each state as principals see it."""


@define(eq=False, kw_only=True)
class Sights:
    """Decides who sees what; owned by the server. Safe for any number of threads."""

    newest: Callable[[], Image | None]
    """The newest state; None before the first."""
    settings: Settings
    _image: Image | None = field(default=None, init=False)
    _authorizer: StandardAuthorizer | None = field(default=None, init=False)
    _known: dict[tuple[str, str], All | Own] = field(factory=dict, init=False)
    _images: "WeakKeyDictionary[Image, OrderedDict[str, Image]]" = field(factory=WeakKeyDictionary, init=False)
    """For as long as somebody else keeps the state."""
    _lock: Lock = field(factory=Lock, init=False)
    _making: Lock = field(factory=Lock, init=False)
    """Of images, which take longer than `of`: the event loop waits for that one."""

    def of(self, principal: str, host: str | None) -> All | Own:
        """Return what a principal at an address may see, by the newest state; before the first, its own.

        So too at an address that nobody knows (None): a rule that denies it there would not count.
        """
        image = self.newest()
        if image is None or host is None:
            return Own(principal)
        with self._lock:
            if image is not self._image or self._authorizer is None:
                try:
                    settings = settled(self.settings, image)
                except ConfigError:  # which Kafka decides is not known: no rule shows that it may see more
                    return Own(principal)
                self._image, self._authorizer = image, authorizer_of(image, settings)
                self._known.clear()
            found = self._known.get((principal, host))
            if found is None:
                if len(self._known) >= _SIGHTS:
                    self._known.clear()
                found = self._known[principal, host] = visibility(principal, host, self._authorizer)
            return found

    def image(self, image: Image, sight: All | Own) -> Image:
        """Return a state, of any moment, as a viewer may see it."""
        if isinstance(sight, All):
            return image
        with self._making:
            kept = self._images.setdefault(image, OrderedDict())
            known = kept.get(sight.principal)
            if known is None:
                known = kept[sight.principal] = visible_image(image, sight)
                if len(kept) > _VIEWERS:
                    kept.popitem(last=False)
            kept.move_to_end(sight.principal)
            return known
