"""Regions: which requests a product of sets holds."""

import pytest

from aclog.analysis.regions import (
    ANY_NAME,
    EVERYONE,
    EVERYWHERE,
    REQUESTED,
    Hosts,
    Literal,
    Names,
    Region,
    Request,
    Subtree,
    contains,
    everyone_but,
    only,
    operations_of,
)
from aclog.authorizer.codes import AclOperation, ResourceType

_ORDERS = Subtree(prefix="orders.", except_prefixes=("orders.pii.",), except_literals=("orders.raw",))


@pytest.mark.parametrize(
    ("names", "name", "held"),
    [
        (ANY_NAME, "x", True),
        (ANY_NAME, "", False),
        ((Literal(name="a"),), "a", True),
        ((Literal(name="a"),), "ab", False),
        ((_ORDERS,), "orders.", True),
        ((_ORDERS,), "orders.eu", True),
        ((_ORDERS,), "order", False),
        ((_ORDERS,), "orders.pii.card", False),
        ((_ORDERS,), "orders.raw", False),
        ((_ORDERS,), "orders.raw2", True),
        ((_ORDERS, Literal(name="orders.raw")), "orders.raw", True),
    ],
)
def test_names(names: Names, name: str, held: bool) -> None:
    assert contains(names, name) is held


def test_principals() -> None:
    assert "User:a" in only("User:b", "User:a")
    assert "User:c" not in only("User:b", "User:a")
    assert "Group:x" in EVERYONE
    assert "User:a" not in everyone_but("User:a")
    assert only("User:b", "User:a", "User:b").named == ("User:a", "User:b")


@pytest.mark.parametrize(
    ("hosts", "host", "held"),
    [
        (EVERYWHERE, "10.0.0.1", True),
        (Hosts(entries=("10.0.0.0/30",)), "10.0.0.3", True),
        (Hosts(entries=("10.0.0.0/30",)), "10.0.0.4", False),
        (Hosts(entries=("10.0.0.0/30",), complement=True), "10.0.0.3", False),
        (Hosts(entries=("10.0.0.0/30",), complement=True), "10.0.0.4", True),
        (Hosts(entries=("10.0.0.1",)), "10.0.0.1", True),
        (Hosts(entries=("fe80::/10",), except_addresses=("fe80:0:0:0:0:0:0:1%1",)), "fe80:0:0:0:0:0:0:1%1", False),
        (Hosts(entries=("fe80::/10",), except_addresses=("fe80:0:0:0:0:0:0:1%1",)), "fe80:0:0:0:0:0:0:1%2", True),
    ],
)
def test_hosts(hosts: Hosts, host: str, held: bool) -> None:
    assert (host in hosts) is held


def test_a_region_is_a_product() -> None:
    region = Region(
        resource_type=ResourceType.TOPIC,
        operations=1 << AclOperation.READ,
        principals=only("User:a"),
        hosts=EVERYWHERE,
        names=(_ORDERS,),
    )
    inside = {
        "principal": "User:a",
        "host": "10.0.0.1",
        "operation": AclOperation.READ,
        "resource_type": ResourceType.TOPIC,
        "resource_name": "orders.eu",
    }
    assert Request(**inside) in region
    for outside in (
        {"principal": "User:b"},
        {"operation": AclOperation.WRITE},
        {"resource_type": ResourceType.GROUP},
        {"resource_name": "orders.raw"},
    ):
        assert Request(**inside | outside) not in region


def test_a_request_asks_one_of_13_operations() -> None:
    assert len(list(operations_of(REQUESTED))) == 13
    assert AclOperation.ALL not in operations_of(REQUESTED)
