"""What decides in a place for which a plan is made."""

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from random import Random
from unittest.mock import patch

import pytest

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import ranges_among
from aclog.authorizer.settings import Generation
from aclog.planning.plan import Batching, PlaceAddress, PlaceKind
from aclog.targets import opening
from tests.support.builders.acls import acl
from tests.support.planning.memory_place import MemoryPlace


def place_of(*rules: StandardAcl) -> MemoryPlace:
    return MemoryPlace(
        batching=Batching.RESOURCE,
        rules=frozenset(rules),
        allow_everyone=True,
        point=lambda: None,
        random=Random(0),
    )


@pytest.mark.parametrize("kind", list(PlaceKind))
def test_on_zookeeper_a_wildcard_covers_every_name_as_it_does_for_the_older_authorizer(kind: PlaceKind) -> None:
    address = PlaceAddress(kind=kind, value="here")
    with patch.object(opening, "open_place", lambda *_args, **_flags: nullcontext(place_of())):
        found = opening.find_place(address, opening.PlaceSettings(), None, print)
    assert found.settings.documented is (kind is PlaceKind.ZOOKEEPER)


def test_ranges_are_looked_for_only_where_no_kafka_is_named() -> None:
    place, looked = place_of(acl("t", host="10.0.0.0/8")), []

    def ranges(contents: Iterable[bytes]) -> Iterator[str]:
        looked.append(1)
        yield from ranges_among(contents)

    address = PlaceAddress(kind=PlaceKind.LOG, value="here")
    with (
        patch.object(opening, "open_place", lambda *_args, **_flags: nullcontext(place)),
        patch.object(opening, "ranges_among", ranges),
    ):
        told = opening.PlaceSettings(generation=Generation.V4_4)
        assert opening.find_place(address, told, None, print).kafka.stated is Generation.V4_4
        assert looked == []
        place.levels = {1: 33}
        assert opening.find_place(address, opening.PlaceSettings(), None, print).kafka.stated is Generation.V4_4
        assert looked == [1]
