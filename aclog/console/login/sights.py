"""What viewers see of the newest state, kept until the state changes."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from attrs import define, field

from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import StandardAuthorizer
from aclog.console.login.visibility import All, Own, authorizer_of, visibility, visible_image
from aclog.snapshots.image import Image

_SIGHTS, _IMAGES = 10_000, 256
"""How many are kept: of principals at addresses, and of states as principals see them."""


@define(eq=False, kw_only=True)
class Sights:
    """Decides who sees what; owned by the server. Safe for any number of threads."""

    newest: Callable[[], Image | None]
    """The newest state; None before the first."""
    settings: Settings
    _image: Image | None = field(default=None, init=False)
    _authorizer: StandardAuthorizer | None = field(default=None, init=False)
    _known: dict[tuple[str, str], All | Own] = field(factory=dict, init=False)
    _images: "OrderedDict[tuple[int, str], tuple[Image, Image]]" = field(factory=OrderedDict, init=False)
    _lock: Lock = field(factory=Lock, init=False)

    def of(self, principal: str, host: str) -> All | Own:
        """Return what a principal at an address may see, by the newest state; before the first, its own."""
        image = self.newest()
        if image is None:
            return Own(principal)
        with self._lock:
            if image is not self._image or self._authorizer is None:
                self._image, self._authorizer = image, authorizer_of(image, self.settings)
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
        key = id(image), sight.principal
        with self._lock:
            known = self._images.get(key)  # its first is the image itself, so that the id is nobody else's
            if known is None:
                known = self._images[key] = image, visible_image(image, sight)
                if len(self._images) > _IMAGES:
                    self._images.popitem(last=False)
            self._images.move_to_end(key)
            return known[1]
