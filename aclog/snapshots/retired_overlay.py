"""What a merge replaced, taken apart slowly.

The overlay of a million ACLs that was just folded is hundreds of thousands of objects, and the last reference to it
frees them all at once: 50 ms in which no other thread of the process runs. So its maps are emptied in slices.
"""

from collections.abc import Callable
from itertools import islice
from typing import Any

from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.persistent_map import Map

_SLICE = 512


def take_apart(retired: list[AclsImage], pause: Callable[[], None]) -> None:
    """Free the overlays of ACLs that nobody needs any more, calling `pause` between slices.

    They are taken out of the list: whoever refers to one of them, as to an argument, would keep it whole until later.
    Harmless if somebody needs them: the maps are persistent, and what others refer to stays.
    """
    maps: list[Map[Any, Any]] = []
    while retired:
        overlay = retired.pop().index.overlay
        maps += [*overlay.touched, overlay.added, overlay.removed]
        del overlay
    while maps:
        _empty(maps, pause)


def _empty(maps: "list[Map[Any, Any]]", pause: Callable[[], None]) -> None:
    """Empty the last of these maps, and take it out."""
    keys = iter(list(maps[-1]))
    rest = maps.pop()
    while some := list(islice(keys, _SLICE)):
        rest = rest.changed({}, some)  # keys come leaf by leaf: few nodes are copied
        pause()
