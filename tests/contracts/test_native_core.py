"""The native core beside the Python path: the same answers on any estate, and no memory of others on a damaged base."""

import gc
import json
from collections import Counter
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from random import Random
from time import thread_time
from uuid import UUID

import pytest
from attrs.exceptions import FrozenInstanceError
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl, cidr_range, host_address
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.index.layout import ASK_PYTHON, NOT_TAKEN, resource_hash, resource_key
from aclog.metalog import native as native_module
from aclog.metalog.native import maker
from aclog.metalog.records import AccessControlEntryRecord
from tests.scenarios.native_fuzz import damaged_bases, misuses
from tests.support.builders.acls import record_of, removal_of
from tests.support.builders.images import with_ids
from tests.support.models.differential import image_of
from tests.support.models.native_paths import PATHS, differing
from tests.support.models.shapes import ODD, RANGED, Maker, Shape, shapes
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


@settings(max_examples=examples(100), deadline=None)
@given(shape=shapes(**RANGED))
def test_both_paths_agree_on_ranges(shape):
    check(shape, cidr=True)


@settings(max_examples=examples(30), deadline=None)
@given(shape=shapes(**RANGED | ODD))
def test_both_paths_agree_on_ranges_of_odd_records(shape):
    check(shape, cidr=True)


def check(shape: Shape, *, cidr: bool = False) -> None:
    maker = Maker(shape)
    image = image_of(maker.estate.acls, changes=shape.changes, random=maker.random)
    assert not differing(image.with_options(documented=False, cidr=cidr), maker.asks(120), Counter())


def test_ordinary_requests_are_never_left_to_python():
    random = Random(1)
    acls = {*rules(range(300)), *rules(range(5), pattern_type=PatternType.PREFIXED)}
    core = AclsImage.from_acls(with_ids(sorted(acls, key=str))).index.core
    for _ in range(300):
        ask = f"User:{random.randrange(9)}", "10.0.0.1"
        name = ResourceType.TOPIC, f"t{random.randrange(60)}", False
        assert core.mask(*ask, *name) >= 0
        assert core.rule(*ask, AclOperation.READ, *name) >= -1


def test_ordinary_requests_with_ranges_are_never_left_to_python():
    random = Random(1)
    hosts = [
        "*",
        "10.0.0.0/8",
        "10.1.2.3/16",
        "10.1.2.0/24",
        "2001:db8::/32",
        "0.0.0.0/0",
        "::/0",
        "a/b",
        "10.0.0.0/40",
    ]
    acls = {acl for host in hosts for acl in rules(range(300), host=host)}
    image = AclsImage.from_acls(with_ids(sorted(acls, key=str))).with_options(documented=False, cidr=True)
    for _ in range(300):
        ask = f"User:{random.randrange(9)}", random.choice(["10.1.2.9", "10.9.9.9", "2001:db8:0:0:0:0:0:1", "::1"])
        name = ResourceType.TOPIC, f"t{random.randrange(60)}", image.semantics
        assert image.index.core.mask(*ask, *name) >= 0
        assert image.index.core.rule(*ask, AclOperation.READ, *name) >= -1


FIRST, *ROWS = map(json.loads, (Path(__file__).parents[1] / "data/cidr/ranges.jsonl").read_text().splitlines())
TABLE = [row for row in ROWS if "/" in row["host"]]


@pytest.mark.parametrize("changed", [False, True], ids=["in the base", "in changes"])
def test_ranges_are_what_the_classes_that_kafka_asks_say(changed):
    """Each text of tests/data/cidr for a principal of its own."""
    acls = with_ids([rules(range(1), principal=f"User:{at}", host=row["host"])[0] for at, row in enumerate(TABLE)])
    image = AclsImage.from_acls([] if changed else acls).apply(map(record_of, acls if changed else []))
    image = image.with_options(documented=False, cidr=True)
    differing, left = [], Counter[str]()
    for at, row in enumerate(TABLE):
        for host in FIRST["hosts"]:
            mask = image.index.core.mask(f"User:{at}", host, ResourceType.TOPIC, "t0", image.semantics)
            left[("answered", "left")[mask < 0] + (" IPv6" if ":" in host else " IPv4")] += 1
            if mask >= 0 and bool(mask) != (host in (row["contains"] or ())):
                differing.append((row, host))
    assert differing == []
    assert left["left IPv4"] == 0
    assert left["answered IPv6"] > 5_000


@settings(max_examples=examples(300), deadline=None)
@given(
    base=st.text(st.sampled_from("012f:.0:%[]+/ \u0661A"), max_size=20)
    | st.ip_addresses().map(str)
    | st.ip_addresses(v=6).map(lambda address: address.exploded),
    bits=st.sampled_from(
        ["", "/", "/0", "/8", "/08", "/31", "/32", "/33", "/64", "/127", "/128", "/129", "/+8", "/ 8", "/\u0661"]
    ),
    host=st.text(st.sampled_from("012f:.0:%[]+/ \u0661A"), max_size=20) | st.ip_addresses().map(str),
    flips=st.integers(0, 128),
)
def test_texts_that_are_ranges_and_addresses_nearly(base, bits, host, flips):
    text = base + bits
    found = cidr_range(text)
    hosts = [host]
    if found is not None:  # an address in it, or just not, in Java's form
        size = 32 if found.version == 4 else 128
        number = (found.first ^ 1 << flips) % (1 << size)
        hosts.append(host_address(str((IPv4Address if size == 32 else IPv6Address)(number))))
    acl = rules(range(1), host=text)[0]
    image = AclsImage.from_acls(with_ids([acl])).with_options(documented=False, cidr=True)
    for each in hosts:
        mask = image.index.core.mask("User:0", each, ResourceType.TOPIC, "t0", image.semantics)
        assert mask in (ASK_PYTHON, image.computed_mask("User:0", each, ResourceType.TOPIC, "t0"))
        assert mask != ASK_PYTHON or ":" in each


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


class Failing:
    """Its conversion raises an error of its own."""

    def __index__(self) -> int:
        raise KeyError("own")

    def __bool__(self) -> bool:
        raise KeyError("own")


class Calling:
    """Its conversion runs Python code, which fails while another error is set."""

    def __index__(self) -> int:
        return len(repr([1]))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((Calling(), "t", Failing(), "User:a", "*", Calling(), 1), KeyError),
        ((Failing(), "t", True, "User:a", "*", Calling(), Calling()), KeyError),
        ((None, "t", True, "User:a", "*", Calling(), Calling()), TypeError),
        ((2, None, True, "User:a", "*", Calling(), Calling()), TypeError),
        ((2, "t", True, "User:a", 7, 1 << 99, Calling()), TypeError),
        ((Failing(), "\ud800", True, "User:a", "*", 1, 1), KeyError),
        ((2, "\ud800", True, "User:a", "*", Calling(), 1), ValueError),
        ((2, "t", True, "User:a", "*", 1 << 99, Calling()), ValueError),
    ],
)
def test_the_first_wrong_argument_is_the_error(arguments, error):
    core = AclsImage.from_acls(with_ids(rules(range(3)))).index.core
    for each in (core, core.put(ResourceType.TOPIC, "t", True, "User:a", "*", 4, 1)):
        with pytest.raises(error):
            each.put(*arguments)


@pytest.mark.slow(2)
def test_bad_arguments_are_refused_and_not_kept():
    outcomes, wrong = misuses(seed=1, count=6_000)
    assert wrong == []
    assert min(outcomes[name] for name in ("answered", "TypeError", "ValueError")) > 100
    assert outcomes["OwnError"] > 20  # rare: an argument before it is mostly refused first


@settings(max_examples=examples(60), deadline=None)
@given(shape=shapes(**ODD), seed=st.integers(0, 99))
def test_resource_patterns_have_the_numbers_of_the_python_path(shape, seed):
    estate = Maker(shape).estate
    base = image_of(estate.acls, changes=0, random=Random(seed)).index.base
    names = {each.acl.resource_name for each in estate.acls} | {"", "*", "no-such-name", "\ud800"}
    for kind in range(8):
        for name in names:
            for literal in (False, True):
                hashed = resource_hash(kind, name.encode("utf-8", "surrogatepass"), literal=literal)
                expected = base.resources.find(resource_key(kind, name, literal=literal), hashed)
                found = base.core.resource(kind, name, literal)
                assert found == (NOT_TAKEN if name == "\ud800" else expected)
                assert base.resource(kind, name, literal=literal) == expected


MADE = {"id": UUID(int=7), "resource_type": 2, "resource_name": "t", "pattern_type": 3, "principal": "User:a"}
MADE |= {"host": "*", "operation": 3, "permission_type": 3, "tagged_fields": ()}


def test_a_maker_makes_what_the_constructor_makes(monkeypatch):
    expected = AccessControlEntryRecord(**MADE)
    makers = [maker(AccessControlEntryRecord, *MADE)]
    monkeypatch.setattr(native_module, "native", None)
    makers.append(maker(AccessControlEntryRecord, *MADE))
    for make in makers:
        made = make(*MADE.values())
        assert type(made) is AccessControlEntryRecord
        assert (made, hash(made), repr(made)) == (expected, hash(expected), repr(expected))
        with pytest.raises(FrozenInstanceError):
            made.host = "x"
        assert gc.is_tracked(made)
        for wrong in (list(MADE.values())[:-1], [*MADE.values(), 1]):
            with pytest.raises((TypeError, ValueError)):
                make(*wrong)


def test_a_maker_of_what_is_no_class_of_slots_is_refused():
    for made, names in ((int, ("real",)), (StandardAcl, ("__repr__",)), (StandardAcl, ("no_field",)), (StandardAcl, 3)):
        with pytest.raises((TypeError, AttributeError)):
            native_module.native.Maker(made, names)
