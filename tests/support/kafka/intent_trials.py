"""Trials of intents: real clients with the least rules, with one of them less, and with one request denied."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Self

from attrs import frozen

from aclog.analysis.intents import Intent, Need, needs_of
from aclog.analysis.regions import operations_of
from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType

IMPLIED = {
    AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}
"""An ALLOW of any of these is also one of the key."""
TYPES = {
    "input": ResourceType.TOPIC,
    "output": ResourceType.TOPIC,
    "topic": ResourceType.TOPIC,
    "internal": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transaction": ResourceType.TRANSACTIONAL_ID,
    "transactions": ResourceType.TRANSACTIONAL_ID,
}
"""What a client uses; `internal` and `transactions` are all those that begin with an application's id and a dash."""


@frozen
class Kind:
    """A kind of client: `named` is what the question about its intent names; `settings` are the client's own."""

    intent: Intent
    named: tuple[str, ...]
    settings: Mapping[str, str] = {}
    beside: tuple[tuple[str, AclOperation], ...] = ()
    """What it also asks, which is a part of another intent."""


KINDS = {
    "produce": Kind(Intent.PRODUCE, ("output",)),
    "consume": Kind(Intent.CONSUME, ("input", "group"), {"protocol": "classic"}),
    "consume, KIP-848": Kind(Intent.CONSUME, ("input", "group"), {"protocol": "consumer"}),
    "transact": Kind(Intent.TRANSACT, ("output", "transaction")),
    "transact, group": Kind(
        Intent.TRANSACT, ("output", "transaction", "group"), beside=(("input", AclOperation.READ),)
    ),
    "stream": Kind(Intent.STREAM, ("input", "output", "group"), {"protocol": "classic", "guarantee": "at_least_once"}),
    "stream, exactly once": Kind(
        Intent.STREAM,
        ("input", "output", "group", "transaction"),
        {"protocol": "classic", "guarantee": "exactly_once_v2"},
    ),
    "stream, KIP-1071": Kind(
        Intent.STREAM,
        ("input", "output", "group", "transaction"),
        {"protocol": "streams", "guarantee": "exactly_once_v2"},
    ),
    "admin": Kind(Intent.ADMIN, ("topic",)),
}


@frozen(kw_only=True)
class Trial:
    """A client of its own, under rules of its own."""

    name: str
    needs: tuple[Need, ...]
    """Of its intent, on what it uses."""
    holds: bool
    """Whether it has all that its intent needs; it may lack what another intent does."""
    client: Mapping[str, str]
    """As tests.support.kafka.clients takes it."""
    rules: tuple[Mapping[str, str], ...]
    """As AdminClient takes them."""


def trials(kinds: Iterable[str], run: str) -> Iterator[Trial]:
    """Yield all trials of these kinds; `run` begins the names of all that they use."""
    number = count()
    for name in kinds:
        plain = _Client.of(KINDS[name], run, run)
        harms = [("without", what) for what in plain.least()] + [("denied", what) for what in plain.pairs()]
        for change, what in [("with all", None), *harms]:
            client = _Client.of(KINDS[name], run, f"{run}-{next(number)}")
            rules = [client.rule(*each, "ALLOW") for each in client.least() if (change, each) != ("without", what)]
            if change == "denied":
                rules.append(client.rule(*what, "DENY"))
            yield Trial(
                name=f"{name}: {change} {'rules' if what is None else f'{what[1].name} of {what[0]}'}",
                needs=client.needs,
                holds=what is None or what in client.beside,
                client={**client.names, **KINDS[name].settings, "case": client.names["user"]},
                rules=tuple(rules),
            )


@frozen
class _Client:
    """One with names of its own; a pair is what it asks: a key of TYPES and an operation."""

    names: Mapping[str, str]
    needs: tuple[Need, ...]
    beside: tuple[tuple[str, AclOperation], ...]

    @classmethod
    def of(cls, kind: Kind, run: str, user: str) -> Self:
        """As what the question about its intent names."""
        output = f"out-{user}" if kind.intent is Intent.STREAM else f"{run}-out"
        names = {"input": f"{run}-in", "output": output, "topic": f"{user}-topic", "group": user, "transaction": user}
        literal = PatternType.LITERAL
        named = [ResourcePattern(resource_type=TYPES[key], name=names[key], pattern_type=literal) for key in kind.named]
        if "group" not in kind.named:
            del names["group"]
        return cls({"client": kind.intent, "user": user, **names}, needs_of(kind.intent, named), kind.beside)

    def pairs(self) -> list[tuple[str, AclOperation]]:
        """All that it needs."""
        pairs = [(_key(need), operation) for need in self.needs for operation in operations_of(need.operations)]
        return [*pairs, *self.beside]

    def least(self) -> list[tuple[str, AclOperation]]:
        """The same without what another one on the same resource implies."""
        pairs = self.pairs()
        return [
            (key, operation)
            for key, operation in pairs
            if not any((key, implying) in pairs for implying in IMPLIED.get(operation, ()))
        ]

    def rule(self, key: str, operation: AclOperation, permission: str) -> dict[str, str]:
        """On the resource of this client that a key stands for, or on all that an application makes of its own."""
        own = key in ("internal", "transactions")
        name = f"{self.names['group']}-" if own else self.names[key]
        return {
            "resourceType": TYPES[key].name,
            "resourceName": name,
            "patternType": "PREFIXED" if own else "LITERAL",
            "principal": f"User:{self.names['user']}",
            "host": "*",
            "operation": operation.name,
            "permissionType": permission,
        }


def _key(need: Need) -> str:
    """Which resource of a client meets a need."""
    if need.resource_type == ResourceType.GROUP:
        return "group"
    if need.resource_type == ResourceType.TRANSACTIONAL_ID:
        return "transactions" if need.every else "transaction"
    if need.every:
        return "internal"
    if need.operations >> AclOperation.CREATE & 1:
        return "topic"
    return "input" if need.operations >> AclOperation.READ & 1 else "output"
