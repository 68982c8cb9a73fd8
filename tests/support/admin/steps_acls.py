"""ACLs created, described and deleted: every code, good and bad texts, limits, and requests at random."""

import random
from collections.abc import Iterator
from typing import Any

from tests.support.admin.requests import BOTH, Step, create, delete, describe, exactly, matching, rule

NAMES = ("orders", "orders.eu", "ord", "pay", "*", "päy 結😀", "kafka-cluster", "x" * 300)
PRINCIPALS = ("User:alice", "User:bob", "User:*", "Group:dev", "User:a:b", "User:CN=carol,OU=x")
HOSTS = ("*", "127.0.0.1", "10.1.2.3", "2001:db8::1")


def creations() -> Iterator[Step]:
    for listener in BOTH:
        for version in (1, 2, 3):
            unlike = {"principal": f"User:{listener}-{version}"}
            yield Step(name=f"create v{version}", listener=listener, sends=(create(version, rule(**unlike)),))
            yield Step(name=f"again v{version}", listener=listener, sends=(create(version, rule(**unlike)),))
            for kind in range(1, 9):
                row = rule(resource_type=kind, resource_name="kafka-cluster", resource_pattern_type=4, **unlike)
                yield Step(name=f"resource type {kind} v{version}", listener=listener, sends=(create(version, row),))
    odd = {
        "resource_type": (0, -1, 99, 127),
        "resource_pattern_type": (0, 1, 2, 3, 4, 5, -1),
        "operation": range(-1, 17),
    }
    odd |= {"permission_type": (0, 1, 2, 3, 4, -1, -128)}
    for name, values in odd.items():
        for value in values:
            row = rule(**{name: value}, host="10.0.0.1")
            yield Step(name=f"{name} {value}", sends=(create(3, row),))
            beside = rule(principal=f"User:beside-{name}-{value}")
            yield Step(name=f"{name} {value} beside a good one", sends=(create(2, row, beside),))
    texts: dict[str, tuple[str, ...]] = {
        "resource_name": ("", " ", "a/b", "\0", "é", "*", "**", "a*", "x" * 3000),
        "principal": (
            "",
            ":",
            "alice",
            "User:",
            ":alice",
            "User:a:b",
            "user:alice",
            "User:*",
            "*",
            "User:é😀",
            " User:a",
        ),
        "host": ("", "*", "localhost", "1.2.3.4", "::1", "10.0.0.0/8", "no such host", "é"),
    }
    for name, names in texts.items():
        for text in names:
            yield Step(name=f"{name} {text[:20]!r}", sends=(create(3, rule(**{name: text})),))
    for name in ("kafka-cluster", "", "cluster", "*"):
        for pattern in (3, 4):
            row = rule(resource_type=4, resource_name=name, resource_pattern_type=pattern, operation=8)
            yield Step(name=f"the cluster {name!r} {pattern}", sends=(create(3, row),))
    longest = rule(resource_name="x" * 32767)
    yield Step(name="the longest name", sends=(create(3, longest),))
    yield Step(name="the longest name is deleted", sends=(delete(3, exactly(longest)),))
    yield Step(name="a longer name", sends=(create(3, rule(resource_name="x" * 40000)),))
    yield Step(name="no creations", sends=(create(3),))
    pair = rule(principal="User:twice")
    yield Step(name="one rule twice in a request", sends=(create(3, pair, pair),))
    mixed = (rule(principal="User:mixed"), rule(principal="mixed"), rule(resource_name=""), rule(operation=99), pair)
    yield Step(name="good and bad together", sends=(create(3, *mixed),))
    yield Step(name="good and bad together, to the controller", listener="controller", sends=(create(3, *mixed),))
    estate = [rule(resource_name=name, resource_pattern_type=pattern) for name in NAMES[:7] for pattern in (3, 4)]
    yield Step(name="an estate", sends=(create(3, *estate),))
    spread = [rule(resource_type=kind, principal=who) for kind in (2, 3, 5, 6, 7) for who in PRINCIPALS]
    yield Step(name="and more", listener="controller", sends=(create(3, *spread),))


def descriptions() -> Iterator[Step]:
    for listener in BOTH:
        for version in (1, 2, 3):
            yield Step(name=f"describe all v{version}", listener=listener, sends=(describe(version),))
    odd: dict[str, tuple[Any, ...]] = {
        "resource_type_filter": (-1, 0, 2, 3, 4, 5, 6, 7, 8, 99),
        "pattern_type_filter": (-1, 0, 2, 3, 4, 5, 77),
        "operation": (-1, 0, 2, 3, 4, 8, 12, 13, 14, 15, 99),
        "permission_type": (-1, 0, 2, 3, 4, 99),
        "resource_name_filter": ("orders", "orders.eu.1", "ord", "", "*", "no such"),
        "principal_filter": ("User:alice", "User:*", "alice", "", "User:nobody"),
        "host_filter": ("*", "10.0.0.1", "", "nowhere"),
    }
    for name, values in odd.items():
        for value in values:
            yield Step(name=f"describe {name} {value!r}", sends=(describe(3, **{name: value}),))
    for pattern in (1, 2, 3, 4):
        for kind in (1, 2):
            for name in ("orders.eu.1", "orders", "*", ""):
                fields = matching(resource_type_filter=kind, resource_name_filter=name, pattern_type_filter=pattern)
                listener = BOTH[pattern % 2]
                yield Step(
                    name=f"describe {kind} {name!r} {pattern}", listener=listener, sends=(describe(3, **fields),)
                )
    yield Step(name="describe users by v2", sends=(describe(2, resource_type_filter=7),))


def deletions() -> Iterator[Step]:
    for listener in BOTH:
        for version in (1, 2, 3):
            acl_filter = exactly(rule(principal=f"User:{listener}-{version}"))
            yield Step(name=f"delete v{version}", listener=listener, sends=(delete(version, acl_filter),))
            yield Step(name=f"delete again v{version}", listener=listener, sends=(delete(version, acl_filter),))
    nobody = {"principal_filter": "User:nobody"}
    odd: dict[str, tuple[Any, ...]] = {
        "resource_type_filter": (-1, 0, 1, 7, 8, 99),
        "pattern_type_filter": (-1, 0, 1, 2, 3, 4, 5, 77),
        "operation": (-1, 0, 1, 15, 16, 99),
        "permission_type": (-1, 0, 1, 2, 3, 4, 99),
        "resource_name_filter": ("", "no such"),
    }
    for name, values in odd.items():
        for value in values:
            yield Step(name=f"delete {name} {value!r}", sends=(delete(3, matching(**nobody) | {name: value}),))
    good = matching(principal_filter="User:beside-operation-5")
    unknown_pattern = matching(pattern_type_filter=77)
    yield Step(name="a bad filter beside a good one", sends=(delete(3, unknown_pattern, good),))
    twice = matching(principal_filter="User:CN=carol,OU=x")
    yield Step(name="filters that overlap", sends=(delete(3, twice, twice, matching(**nobody)),))
    yield Step(name="no filters", sends=(delete(3),))
    match = matching(resource_type_filter=2, resource_name_filter="orders.eu", pattern_type_filter=2)
    who = {"principal_filter": "User:alice", "host_filter": "*"}
    yield Step(name="delete what matches a topic", listener="controller", sends=(delete(3, match | who),))
    yield Step(name="what is left", sends=(describe(3),))


def limits() -> Iterator[Step]:
    rows = [rule(resource_name=f"bulk-{number}", principal="User:bulk") for number in range(10_000)]
    one = rule(resource_name="one-more", principal="User:bulk")
    yield Step(name="10,001 creations", sends=(create(3, *rows, one),))
    yield Step(name="10,000 creations", sends=(create(3, *rows),))
    yield Step(name="one more", sends=(create(3, one),))
    some = matching(principal_filter="User:bulk", resource_name_filter="bulk-77")
    yield Step(name="10,001 deletions", sends=(delete(3, some, matching(principal_filter="User:bulk")),))
    yield Step(name="one", sends=(delete(3, exactly(one)),))
    yield Step(name="still there", sends=(describe(3, **some),))
    yield Step(name="10,000 deletions", sends=(delete(3, matching(principal_filter="User:bulk")),))
    yield Step(name="none left", sends=(describe(3, principal_filter="User:bulk"),))


def at_random() -> Iterator[Step]:
    dice = random.Random(801)
    for number in range(150):
        listener, version, user = (
            dice.choice(BOTH),
            dice.choice((1, 2, 3, 3)),
            "admin" if dice.random() < 0.9 else "bob",
        )
        kind = dice.choice(("create", "create", "create", "describe", "delete"))
        if kind == "create":
            ask = create(version, *(_random_rule(dice, version) for _ in range(dice.randint(1, 6))))
        elif kind == "describe":
            ask = describe(version, **_random_filter(dice))
        else:
            ask = delete(version, *(_random_filter(dice, narrow=True) for _ in range(dice.randint(1, 3))))
        yield Step(name=f"at random {number}: {kind} v{version}", listener=listener, user=user, sends=(ask,))


def _random_rule(dice: random.Random, version: int) -> dict[str, Any]:
    kind = dice.choice((2, 2, 3, 4, 5, 6) + ((7,) if version == 3 else ()))
    name = "kafka-cluster" if kind == 4 and dice.random() < 0.9 else dice.choice(NAMES)
    fields = rule(resource_type=kind, resource_name=name, resource_pattern_type=dice.choice((3, 3, 4)))
    fields |= {"principal": dice.choice(PRINCIPALS), "host": dice.choice(HOSTS), "operation": dice.randint(2, 14)}
    return fields | {"permission_type": dice.choice((2, 3))}


def _random_filter(dice: random.Random, *, narrow: bool = False) -> dict[str, Any]:
    def sometimes(*values: Any, share: float = 0.5) -> Any:
        return dice.choice(values) if dice.random() < share else None

    fields = matching(principal_filter=sometimes(*PRINCIPALS, share=0.9 if narrow else 0.4))
    fields |= {"resource_type_filter": sometimes(2, 3, 4, 5, 6) or 1, "host_filter": sometimes(*HOSTS, share=0.3)}
    fields |= {
        "resource_name_filter": sometimes(*NAMES, "orders.eu.1"),
        "operation": sometimes(*range(2, 15), share=0.3) or 1,
    }
    return fields | {"pattern_type_filter": dice.randint(1, 4), "permission_type": sometimes(2, 3, share=0.3) or 1}
