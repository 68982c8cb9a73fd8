"""Changes of rules that Kafka's own Admin client makes on a test Kafka, and the rules that there are then."""

import time
from collections.abc import Sequence
from random import Random

from attrs import frozen

from aclog.authorizer.acl import StandardAcl, rule_of_object
from tests.support.builders.acls import acl_row
from tests.support.kafka.server import AdminClient, KafkaError

Row = dict[str, str]
"""A rule with the keys of `aclog acls list --format jsonl`, in their order."""

_RETRY_SECONDS = 180.0
_NAMES = {"TOPIC": "orders", "GROUP": "readers", "TRANSACTIONAL_ID": "payments"}
_OPERATIONS = ("READ", "WRITE", "DESCRIBE", "ALL")
_MOST = 5
"""Rules that one request creates or deletes."""


@frozen
class Change:
    """One request: `rules` are all created or all deleted."""

    creates: bool
    rules: Sequence[Row]

    @property
    def last(self) -> StandardAcl:
        """The rule that the last record of the request is about."""
        return rule_of_object(dict(self.rules[-1])).acl


class RuleChanges:
    """Changes one after another, chosen by `random`; `made` counts rules that were created or deleted.

    About as many are deleted as created once there are `steady` of them. Some that were deleted come back.
    """

    def __init__(self, random: Random, *, steady: int = 400) -> None:
        self._random, self._steady = random, steady
        self._there: dict[tuple[str, ...], Row] = {}
        self._gone: list[Row] = []
        self._named = 0
        self.made = 0

    @property
    def rows(self) -> list[Row]:
        """The rules that are there, sorted as AdminClient.acls."""
        return [self._there[key] for key in sorted(self._there)]

    def next(self) -> Change:
        """What to ask for next; it counts as done."""
        count = self._random.randint(1, _MOST)
        creates = len(self._there) < _MOST or self._random.random() > 0.5 * len(self._there) / self._steady
        rules = [self._new() for _ in range(count)] if creates else self._random.sample(self.rows, count)
        for row in rules:
            key = tuple(row.values())
            if creates:
                self._there[key] = row
            else:
                self._gone.append(self._there.pop(key))
        self.made += count
        return Change(creates, rules)

    def _new(self) -> Row:
        if self._gone and self._random.random() < 0.2:
            return self._gone.pop(self._random.randrange(len(self._gone)))
        self._named += 1
        kind, stem = self._random.choice(list(_NAMES.items()))
        return acl_row(
            f"{stem}-{self._named}",
            resourceType=kind,
            patternType=self._random.choice(["LITERAL", "PREFIXED"]),
            principal=f"User:u{self._random.randrange(50)}",
            host=self._random.choice(["*", "10.0.0.1"]),
            operation=self._random.choice(_OPERATIONS),
            permissionType=self._random.choice(["ALLOW", "ALLOW", "DENY"]),
        )


def make(admin: AdminClient, change: Change) -> int:
    """Ask for a change until it is acknowledged, as often as need be: asked for twice, it is the same. How often."""
    deadline, attempts = time.monotonic() + _RETRY_SECONDS, 0
    while True:
        attempts += 1
        try:
            admin("createAcls" if change.creates else "deleteAcls", acls=change.rules)
        except KafkaError:
            if time.monotonic() > deadline:
                raise
        else:
            return attempts
