"""What people ask, each answered in at most three steps from the start: by mouse, by keys alone, without a script."""

from datetime import UTC, datetime

import pytest

from tests.support.web.estate import last_march
from tests.support.web.visitor import Hands, Visitor

MOST_STEPS = 3


def who_can_read_it_and_why(visitor: Visitor) -> None:
    visitor.follow("orders")
    visitor.follow("READ")
    visitor.sees("READ on TOPIC orders: 1 principal, and nobody else", "User:billing", "Because of")
    visitor.misses("who", "User:shop")


def why_is_somebody_refused(visitor: Visitor) -> None:
    visitor.fill("Principal", "User:crm")
    visitor.fill("Operation", "READ")
    visitor.fill("Topic", "pii-customers")
    visitor.submit("Why?")
    visitor.sees("User:crm", "DENIED", "It would be allowed by")


def what_can_somebody_do(visitor: Visitor) -> None:
    visitor.follow("User:fraud")
    visitor.sees("User:fraud: may do", "payments.", "10.0.0.9", "DENY")


def who_could_read_it_in_march(visitor: Visitor) -> None:
    visitor.follow("Who can")
    visitor.fill("Name", "pii-customers")
    visitor.fill("As of", f"{last_march(datetime.now(UTC))}-03-15")
    visitor.fill("Operation", "READ")
    visitor.submit("Who can?")
    visitor.sees("User:contractor", "User:audit")


def who_shares_a_prefix(visitor: Visitor) -> None:
    visitor.follow("payments.")
    visitor.sees("Who has rules on names that begin with payments.", "User:billing", "User:fraud")
    visitor.misses("sharing", "User:audit")


def is_a_prefix_closed_to_all_but_one(visitor: Visitor) -> None:
    visitor.follow("who can, below it", beside="pii-")
    visitor.follow("READ")
    visitor.sees("READ on TOPIC pii-*: 1 principal, and nobody else", "User:audit")


QUESTIONS = (
    who_can_read_it_and_why,
    why_is_somebody_refused,
    what_can_somebody_do,
    who_could_read_it_in_march,
    who_shares_a_prefix,
    is_a_prefix_closed_to_all_but_one,
)


@pytest.mark.parametrize("hands", Hands)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_a_question_is_answered_in_three_steps(visit, question, hands):
    visitor = visit(hands)
    visitor.start()
    question(visitor)
    assert 0 < visitor.steps <= MOST_STEPS
