"""Parts of a row as text."""

import pytest

from aclog.analysis.regions import (
    ANY_NAME,
    EVERYONE,
    EVERYWHERE,
    REQUESTED,
    RESOURCE_TYPES,
    Hosts,
    Literal,
    NamePart,
    Subtree,
    everyone_but,
    hosts_text,
    names_text,
    only,
    operations_text,
    who_text,
)
from aclog.analysis.rows.row import Clause, fold, what_text
from aclog.authorizer.codes import AclOperation, ResourceType

READ = 1 << AclOperation.READ
A, PII = Subtree(prefix="a.", except_prefixes=("a.pii.",)), Subtree(prefix="a.pii.", except_literals=("a.pii.x",))


def clause(kind: ResourceType, *names: NamePart, operations: int = READ) -> Clause:
    return Clause(resource_type=kind, operations=operations, names=names)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ((Literal(name="a"),), "a"),
        ((Literal(name="a*"),), '"a*"'),
        ((Literal(name="a\n"),), '"a\\n"'),
        ((Subtree(prefix="a."),), "a.*"),
        ((Subtree(prefix="ö "),), '"ö "*'),
        ((A,), "(a.* except a.pii.*)"),
        ((A, Literal(name="b")), "(a.* except a.pii.*), b"),
        ((Subtree(prefix="", except_prefixes=("*",)), Literal(name="*")), "*"),
        ((Literal(name="*"), Subtree(prefix="", except_prefixes=("*", "a."))), "(* except a.*)"),
        ((Literal(name="*"),), '"*"'),
        ((Literal(name="*"), Literal(name="a")), '"*", a'),
        ((Subtree(prefix="", except_prefixes=("a.",)), Literal(name="a.x")), "(every name except a.*), a.x"),
        ((Subtree(prefix="", except_prefixes=("*",)),), '(every name except "*"*)'),
        (tuple(Literal(name=f"t{n}") for n in range(5)), "t0, t1, t2, t3, t4"),
        (tuple(Literal(name=f"t{n}") for n in range(1234)), "t0, t1, t2, t3 and 1,230 more"),
    ],
)
def test_names(names: tuple[NamePart, ...], text: str) -> None:
    assert names_text(names) == text


def test_who() -> None:
    assert who_text(only("User:b", "User:a")) == "User:a, User:b"
    assert who_text(EVERYONE) == "everyone"
    assert who_text(everyone_but("User:a")) == "everyone except User:a"


def test_operations() -> None:
    assert operations_text(READ | 1 << AclOperation.WRITE) == "READ, WRITE"
    assert operations_text(REQUESTED) == "ALL"
    assert operations_text(REQUESTED & ~READ) == "ALL except READ"


def test_hosts() -> None:
    assert hosts_text(EVERYWHERE) == "any host"
    assert hosts_text(Hosts(entries=("10.0.0.1",), complement=True)) == "any host except 10.0.0.1"
    assert hosts_text(Hosts(entries=("10.0.0.0/8", "10.0.0.1"))) == "10.0.0.0/8, 10.0.0.1"
    scoped = Hosts(entries=("fe80::/10",), except_addresses=("fe80:0:0:0:0:0:0:1%1",))
    assert hosts_text(scoped) == "fe80::/10 except fe80:0:0:0:0:0:0:1%1"


def test_what() -> None:
    topic, group = clause(ResourceType.TOPIC, A), clause(ResourceType.GROUP, A)
    assert what_text([topic, group]) == "READ on TOPIC, GROUP (a.* except a.pii.*)"
    assert what_text([topic, clause(ResourceType.GROUP, Literal(name="g"))]) == (
        "READ on TOPIC (a.* except a.pii.*); READ on GROUP g"
    )
    assert what_text([clause(ResourceType.CLUSTER, Literal(name="kafka-cluster"))]) == "READ on CLUSTER"
    assert what_text([clause(ResourceType.TOPIC, *ANY_NAME)]) == "READ on every TOPIC"
    but = Subtree(prefix="", except_prefixes=("a.",), except_literals=("b",))
    assert what_text([clause(ResourceType.TOPIC, but)]) == "READ on (every TOPIC except a.*, b)"
    assert what_text([clause(kind, *ANY_NAME, operations=REQUESTED) for kind in RESOURCE_TYPES]) == "ALL on everything"


def test_exceptions_that_another_part_fills_go() -> None:
    assert fold([A, PII]) == (Subtree(prefix="a.", except_literals=("a.pii.x",)),)
    assert fold([A, PII, Literal(name="a.pii.x")]) == (Subtree(prefix="a."),)
    assert fold([Subtree(prefix="a."), Literal(name="a.x"), Literal(name="b")]) == (
        Subtree(prefix="a."), Literal(name="b"),
    )  # fmt: skip
    one = Subtree(prefix="a", except_prefixes=("ab",), except_literals=("ac",))
    other = Subtree(prefix="a", except_prefixes=("abc", "ad"), except_literals=("ac", "abd"))
    assert fold([one, other]) == (Subtree(prefix="a", except_prefixes=("abc",), except_literals=("abd", "ac")),)
