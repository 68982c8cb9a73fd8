"""What decides in a place for which a plan is made."""

from contextlib import nullcontext
from random import Random
from unittest.mock import patch

import pytest

from aclog.places import found_place
from aclog.planning.batching import Batching
from aclog.planning.plan import PlaceAddress, PlaceKind
from tests.support.planning.memory_place import MemoryPlace


@pytest.mark.parametrize("kind", list(PlaceKind))
def test_on_zookeeper_a_wildcard_covers_every_name_as_it_does_for_the_older_authorizer(kind: PlaceKind) -> None:
    place = MemoryPlace(
        batching=Batching.RESOURCE,
        rules=frozenset(),
        allow_everyone=True,
        point=lambda: None,
        random=Random(0),
    )
    address = PlaceAddress(kind=kind, value="here")
    with patch.object(found_place, "open_place", lambda *_args, **_flags: nullcontext(place)):
        found = found_place.find_place(address, found_place.ToldSettings(), None, print)
    assert found.settings.documented is (kind is PlaceKind.ZOOKEEPER)
