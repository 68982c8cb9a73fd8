"""The rules that all are given, and the questions that all are asked."""

import random
from collections.abc import Sequence
from typing import Any

from attrs import frozen

RULES, TOPICS, USERS = 10_000, 5_000, 1_000
BATCH = 1_000
_OPERATIONS = ("READ", "WRITE")


@frozen
class Rule:
    """Whether a user may, or must not, do something with a topic: literal, as every decision point can say it."""

    user: str
    topic: str
    operation: str
    is_deny: bool


@frozen
class Question:
    """May a user do something with a topic?"""

    user: str
    topic: str
    operation: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as AuthZEN asks it."""
        return {
            "subject": {"type": "User", "id": self.user},
            "action": {"name": self.operation},
            "resource": {"type": "topic", "id": self.topic},
        }


def make_rules() -> list[Rule]:
    """Return rules, each once; every tenth denies, half of these what another one allows."""
    draw, found = random.Random(1), dict[Rule, None]()
    while len(found) < RULES:
        rule = Rule(_user(draw), _topic(draw), draw.choice(_OPERATIONS), len(found) % 10 == 9)
        found[rule] = None
        if rule.is_deny and len(found) % 20 == 0:
            found[Rule(rule.user, rule.topic, rule.operation, is_deny=False)] = None
    return list(found)[:RULES]


def make_batches(rules: Sequence[Rule], count: int) -> list[list[Question]]:
    """Return batches of questions, no question twice; half of them are of a rule."""
    draw, found = random.Random(2), dict[Question, None]()
    while len(found) < count * BATCH:
        if len(found) % 2 and len(found) < len(rules):
            rule = draw.choice(rules)
            found[Question(rule.user, rule.topic, rule.operation)] = None
        else:
            found[Question(_user(draw), _topic(draw), draw.choice(_OPERATIONS))] = None
    asked = list(found)
    draw.shuffle(asked)
    return [asked[begin : begin + BATCH] for begin in range(0, len(asked), BATCH)]


def _user(draw: random.Random) -> str:
    return f"user-{draw.randrange(USERS):04}"


def _topic(draw: random.Random) -> str:
    return f"topic-{draw.randrange(TOPICS):05}"
