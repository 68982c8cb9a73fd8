"""Witnesses: the examples that people are shown."""

import pytest

from aclog.analysis.regions import (
    EVERYONE,
    EVERYWHERE,
    LEGAL_CHARACTERS,
    Hosts,
    Literal,
    NamePart,
    Principals,
    Region,
    Subtree,
    everyone_but,
    has_legal_name,
    only,
    witness,
)
from aclog.authorizer.codes import ResourceType


def region(
    *names: NamePart,
    kind: ResourceType = ResourceType.TOPIC,
    hosts: Hosts = EVERYWHERE,
    principals: Principals = EVERYONE,
) -> Region:
    return Region(resource_type=kind, operations=1 << 3, principals=principals, hosts=hosts, names=names)


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (Literal(name="t"), "t"),
        (Subtree(prefix=""), "x"),
        (Subtree(prefix="a."), "a."),
        (Subtree(prefix="a.", except_literals=("a.",)), "a.x"),
        (Subtree(prefix="a.", except_literals=("a.",), except_prefixes=("a.x",)), "a.a"),
        (Subtree(prefix="."), ".x"),
        (Subtree(prefix="..", except_literals=("..",)), "..x"),
        (Subtree(prefix="", except_prefixes=tuple(c for c in LEGAL_CHARACTERS if c != "."), except_literals=()), ".x"),
        (Subtree(prefix="*"), "*"),
    ],
)
def test_a_name(part: NamePart, name: str) -> None:
    assert witness(region(part)).resource_name == name


@pytest.mark.parametrize(
    ("part", "legal"),
    [
        (Literal(name="t"), True),
        (Literal(name=".."), False),
        (Literal(name="*"), False),
        (Literal(name="x" * 250), False),
        (Subtree(prefix="*"), False),
        (Subtree(prefix="é"), False),
        (Subtree(prefix="x" * 249), True),
        (Subtree(prefix="x" * 249, except_literals=("x" * 249,)), False),
        (Subtree(prefix="", except_prefixes=tuple(LEGAL_CHARACTERS)), False),
        (Subtree(prefix="", except_prefixes=tuple(c for c in LEGAL_CHARACTERS if c != ".")), True),
        (Subtree(prefix="a", except_literals=("a",), except_prefixes=tuple("a" + c for c in LEGAL_CHARACTERS)), False),
    ],
)
def test_whether_a_topic_can_have_the_name(part: NamePart, legal: bool) -> None:
    assert has_legal_name(region(part)) is legal
    assert witness(region(part)).resource_name in part
    assert has_legal_name(region(part, kind=ResourceType.GROUP))


def test_one_legal_name_in_any_part_is_enough() -> None:
    both = region(Literal(name="*"), Literal(name="t"))
    assert has_legal_name(both)
    assert witness(both).resource_name == "t"


@pytest.mark.parametrize(
    ("hosts", "host"),
    [
        (EVERYWHERE, "127.0.0.1"),
        (Hosts(entries=("10.0.0.1",)), "10.0.0.1"),
        (Hosts(entries=("10.0.0.0/8",)), "10.0.0.0"),
        (Hosts(entries=("2001:db8::/32",)), "2001:db8:0:0:0:0:0:0"),
        (Hosts(entries=("127.0.0.1",), complement=True), "203.0.113.1"),
        (Hosts(entries=("0.0.0.0/0",), complement=True), "0:0:0:0:0:0:0:1"),
        (Hosts(entries=("0.0.0.0/0", "::/0"), complement=True), "0.0.0.0"),
        (Hosts(entries=("0.0.0.0/1", "128.0.0.0/2", "203.0.0.0/8", "::/0"), complement=True), "192.0.0.0"),
    ],
)
def test_a_host(hosts: Hosts, host: str) -> None:
    assert witness(region(Literal(name="t"), hosts=hosts)).host == host


def test_a_principal() -> None:
    assert witness(region(Literal(name="t"), principals=only("User:b", "User:a"))).principal == "User:a"
    assert witness(region(Literal(name="t"))).principal == "User:anyone"
    assert witness(region(Literal(name="t"), principals=everyone_but("User:anyone"))).principal == "User:anyone-2"
