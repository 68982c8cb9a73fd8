"""What people ask, each answered in at most three steps from the start: by mouse, by keys alone, without a script."""

import pytest

from tests.support.web.estate import MARCH, NEW_RULE, PULL_REQUEST
from tests.support.web.visitor import Hands, Visitor

MOST_STEPS = 3


def who_can_read_it_and_why(visitor: Visitor) -> None:
    visitor.search("orders")
    visitor.follow("orders")
    visitor.follow("READ")
    visitor.sees("READ on TOPIC orders: 1 principal", "User:billing", "Granted by")
    visitor.misses("who", "User:shop")


def why_is_somebody_refused(visitor: Visitor) -> None:
    visitor.follow("Why")
    visitor.fill("Principal", "User:crm")
    visitor.fill("Operation", "READ")
    visitor.fill("Name", "pii-customers")
    visitor.submit("Why?")
    visitor.sees("User:crm", "DENIED", "To allow it")


def what_can_somebody_do(visitor: Visitor) -> None:
    visitor.follow("User:fraud")
    visitor.sees("User:fraud: ", "payments.", "10.0.0.9", "DENY")


def who_could_read_it_in_march(visitor: Visitor) -> None:
    visitor.follow("Who can")
    visitor.fill("Name", "pii-customers")
    visitor.fill("Operation", "READ")
    visitor.submit("Who can?")
    visitor.sees("READ on TOPIC pii-customers")
    visitor.moment(MARCH)
    visitor.sees("User:contractor", "User:audit")


def who_shares_a_prefix(visitor: Visitor) -> None:
    visitor.follow("payments.")
    visitor.sees("Principals with rules on names that begin with payments.", "User:billing", "User:fraud")
    visitor.misses("sharing", "User:audit")


def is_a_prefix_closed_to_all_but_one(visitor: Visitor) -> None:
    visitor.follow("who can access names below", beside="pii-")
    visitor.follow("READ")
    visitor.sees("READ on TOPIC pii-*: 1 principal", "User:audit")


def what_changed_last_night(visitor: Visitor) -> None:
    visitor.follow("What changed last night?")
    visitor.sees("2 rule changes between", "1 gained, 1 lost", "User:reports")


def why_did_the_consumer_stop(visitor: Visitor) -> None:
    visitor.follow("Why")
    visitor.fill("Principal", "User:reports")
    visitor.fill("Operation", "READ")
    visitor.fill("Name", "orders")
    visitor.submit("Why?")
    visitor.sees("DENIED")
    visitor.follow("when this was allowed")
    visitor.sees("Not allowed since offset 17", "removed ALLOW User:reports READ on TOPIC LITERAL 'orders'")


def what_does_this_pull_request_change(visitor: Visitor) -> None:
    visitor.follow("What would a change grant or revoke?")
    visitor.open_file(visitor.home / "pull-request.jsonl")
    visitor.submit("Show")
    visitor.sees("1 rule to add, 1 to remove: access is gained and access is lost", "User:search")


def what_would_this_new_rule_give(visitor: Visitor) -> None:
    visitor.follow("What would a change grant or revoke?")
    visitor.fill("Rules to add and to remove", NEW_RULE)
    visitor.submit("Show")
    visitor.sees("1 rule to add, 0 to remove: access is gained", "READ, DESCRIBE on TOPIC pii-*")


def which_rules_are_unused(visitor: Visitor) -> None:
    visitor.follow("Which rules are unused?")
    visitor.sees("ALLOW User:Shop WRITE on TOPIC LITERAL 'clicks'")


def which_findings_are_new(visitor: Visitor) -> None:
    visitor.follow("Which findings are new?")
    visitor.sees("1 new finding", "shadowed", "ALLOW User:shop WRITE on TOPIC LITERAL 'orders'")


def who_can_delete_payments(visitor: Visitor) -> None:
    visitor.follow("Who can")
    visitor.fill("Name", "payments.us")
    visitor.fill("Operation", "DELETE")
    visitor.submit("Who can?")
    visitor.sees("DELETE on TOPIC payments.us: 1 principal", "User:billing")


def since_when_can_somebody_read_personal_data(visitor: Visitor) -> None:
    visitor.follow("Why")
    visitor.fill("Principal", "User:audit")
    visitor.fill("Operation", "READ")
    visitor.fill("Name", "pii-customers")
    visitor.submit("Why?")
    visitor.sees("ALLOWED", "Decided by", "Since", "offset")


def is_this_rule_used(visitor: Visitor) -> None:
    visitor.follow("Rules")
    visitor.fill("Anything", "clicks")
    visitor.submit("Filter")
    visitor.sees("1 of 13 rules", "never matched")


def who_can_delete_payments_in_words(visitor: Visitor) -> None:
    visitor.search("who can delete payments")
    visitor.follow("who can DELETE TOPIC payments.*")
    visitor.sees("DELETE on TOPIC payments.*: 1 principal", "User:billing")


def who_can_delete_payments_by_a_part_of_the_name(visitor: Visitor) -> None:
    visitor.follow("Who can")
    visitor.fill("Name", "payments")
    visitor.submit("Who can?")
    visitor.follow("payments.*")
    visitor.sees("Access by operation", "User:billing", "DELETE")


def since_when_can_somebody_read_personal_data_in_words(visitor: Visitor) -> None:
    visitor.search("since when can audit read pii-customers")
    visitor.sees("Allowed since", "2025-01-10")


def since_when_by_parts_of_names(visitor: Visitor) -> None:
    visitor.search("audit pii")
    visitor.sees("User:audit", "2025-01-10")


def what_did_the_deploy_of_last_night_open(visitor: Visitor) -> None:
    visitor.search("what did last night's deploy open")
    visitor.sees("1 gained, 1 lost", "everyone", "WRITE, DESCRIBE on TOPIC orders")


def is_this_rule_used_by_its_text(visitor: Visitor) -> None:
    visitor.search("is ALLOW User:Shop WRITE on TOPIC clicks used")
    visitor.sees("Not used from", "no access matched the rule", "Accesses", "06 near-miss-principal")


def is_this_rule_used_by_its_row(visitor: Visitor) -> None:
    visitor.follow("Is a rule used?")
    visitor.follow("never matched", beside="User:Shop")
    visitor.sees("ALLOW User:Shop WRITE on TOPIC LITERAL 'clicks' from *", "Not used from")


def what_would_my_change_do_in_words(visitor: Visitor) -> None:
    visitor.search(f"what if {NEW_RULE}")
    visitor.sees("1 rule to add, 0 to remove: access is gained", "READ, DESCRIBE on TOPIC pii-*")


QUESTIONS = (
    who_can_delete_payments_in_words,
    who_can_delete_payments_by_a_part_of_the_name,
    since_when_can_somebody_read_personal_data_in_words,
    since_when_by_parts_of_names,
    what_did_the_deploy_of_last_night_open,
    is_this_rule_used_by_its_text,
    is_this_rule_used_by_its_row,
    what_would_my_change_do_in_words,
    who_can_delete_payments,
    since_when_can_somebody_read_personal_data,
    is_this_rule_used,
    what_changed_last_night,
    why_did_the_consumer_stop,
    what_does_this_pull_request_change,
    what_would_this_new_rule_give,
    which_rules_are_unused,
    which_findings_are_new,
    who_can_read_it_and_why,
    why_is_somebody_refused,
    what_can_somebody_do,
    who_could_read_it_in_march,
    who_shares_a_prefix,
    is_a_prefix_closed_to_all_but_one,
)


@pytest.mark.parametrize("hands", Hands)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_a_question_is_answered_in_three_steps(visit, question, hands, tmp_path):
    (tmp_path / "pull-request.jsonl").write_text(PULL_REQUEST)
    visitor = visit(hands)
    visitor.home = tmp_path
    visitor.start()
    question(visitor)
    assert 0 < visitor.steps <= MOST_STEPS


def test_all_are_asked():
    """Among them the five tasks of docs/design.md's users: deletion, since when, last night, use, and a change."""
    assert len(set(QUESTIONS)) == 23
