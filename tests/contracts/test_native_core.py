"""The native core beside the Python path: the same answers on any estate, and no memory of others on a damaged base."""

from collections import Counter
from random import Random
from time import thread_time

import pytest
from hypothesis import given, settings

from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, StandardAcl
from aclog.authorizer.acls_image import AclsImage
from tests.scenarios.native_fuzz import damaged_bases
from tests.support.builders.acls import removal_of
from tests.support.builders.images import with_ids
from tests.support.models.differential import image_of
from tests.support.models.native_paths import PATHS, differing
from tests.support.models.shapes import ODD, Maker, Shape, shapes
from tests.support.runs.profiles import examples

pytestmark = pytest.mark.skipif("native" not in PATHS, reason="NATIVE=0: the tests are told to do without the core")


def rules(names: range, **fields: object) -> list[StandardAcl]:
    return [
        StandardAcl(
            **{
                "resource_type": ResourceType.TOPIC,
                "resource_name": f"t{number % 50}",
                "pattern_type": PatternType.LITERAL,
                "principal": f"User:{number % 7}",
                "host": "*",
                "operation": AclOperation.READ,
                "permission_type": AclPermissionType.ALLOW,
                **fields,
            }
        )
        for number in names
    ]


@settings(max_examples=examples(60), deadline=None)
@given(shape=shapes())
def test_both_paths_agree_on_any_estate(shape):
    check(shape)


@settings(max_examples=examples(30), deadline=None)
@given(shape=shapes(**ODD))
def test_both_paths_agree_on_odd_records(shape):
    check(shape)


def check(shape: Shape) -> None:
    maker = Maker(shape)
    image = image_of(maker.estate.acls, changes=shape.changes, random=maker.random)
    assert not differing(image, maker.asks(120), Counter())


def test_ordinary_requests_are_never_left_to_python():
    random = Random(1)
    acls = {*rules(range(300)), *rules(range(5), pattern_type=PatternType.PREFIXED)}
    core = AclsImage.from_acls(with_ids(sorted(acls, key=str))).index.core
    for _ in range(300):
        ask = f"User:{random.randrange(9)}", "10.0.0.1"
        name = ResourceType.TOPIC, f"t{random.randrange(60)}", False
        assert core.mask(*ask, *name) >= 0
        assert core.rule(*ask, AclOperation.READ, *name) >= -1


def test_a_removed_row_is_not_named():
    [first, second] = with_ids([*rules(range(1)), *rules(range(1), operation=AclOperation.ALL)])
    image = AclsImage.from_acls([first, second])
    ask = "User:0", "10.0.0.1", AclOperation.READ, ResourceType.TOPIC, "t0"
    assert image.rule(*ask) == first
    assert image.apply([removal_of(first)]).rule(*ask) == second


def test_emptied_cells_of_known_keys_do_not_slow_changes():
    acls = [rules(range(1), resource_name=f"t{at}", principal=f"User:u{at}")[0] for at in range(100)]
    core = AclsImage.from_acls(with_ids(acls)).index.core
    core = core.put(ResourceType.TOPIC, "t0", True, "User:u0", "*", 0, 0)  # the base's own ACL, removed
    seconds = []
    # Names and principals that the base has, in cells that it does not have.
    for name in range(1, 100):
        begun = thread_time()
        for principal in (other for other in range(100) if other != name):
            for mask, count in ((1 << AclOperation.READ, 2), (-1, 1)):
                core = core.put(ResourceType.TOPIC, f"t{name}", True, f"User:u{principal}", "*", mask, count)
        seconds.append(thread_time() - begun)
    assert min(seconds[-5:]) < 30 * max(seconds[:20])  # a thousand times, if each change copies what is gone
    assert core.mask("User:u0", "*", ResourceType.TOPIC, "t0", False) == 0
    assert core.mask("User:u1", "*", ResourceType.TOPIC, "t2", False) == 0
    assert core.mask("User:u2", "*", ResourceType.TOPIC, "t2", False) != 0


@pytest.mark.slow(2)
def test_damaged_bases_are_refused_or_answer_something():
    assert damaged_bases(seed=1, count=1_500).total() == 1_500
