"""The steps of a plan as text: all of them in order, or some, and how many were left out in between."""

import re
from random import Random

import pytest

from aclog.authorizer.acl import acl_text
from aclog.authorizer.acls_image import content_of, image_of
from aclog.authorizer.codes import AclPermissionType
from aclog.authorizer.settings import Settings
from aclog.planning.plan import Batching, Origin, PlaceAddress, PlaceKind, PlaceState, PlanPlace
from aclog.planning.planner import Circumstances, PlannedChange, make_plan
from aclog.planning.report import PlanReport, step_items
from tests.support.builders.acls import acl

LEFT_OUT = re.compile(r"and (\d+) more to (add|delete): --full shows all")


def report_of(random: Random, batching: Batching) -> PlanReport:
    permissions = (AclPermissionType.ALLOW, AclPermissionType.DENY)
    rules = [
        acl(f"t{number}", f"User:{number % 3}", permission_type=random.choice(permissions))
        for number in range(random.randint(1, 30))
    ]
    removed = tuple(rule for rule in rules if random.random() < 0.5)
    change = PlannedChange(removed=removed, added=tuple(rule for rule in rules if rule not in removed))
    state = PlaceState.of_image(image_of(set(map(content_of, removed))))
    found = Circumstances(
        place=PlanPlace(address=PlaceAddress(kind=PlaceKind.LOG, value="/log"), identity=None, batching=batching),
        state=state,
        settings=Settings(),
        settings_known=True,
        settings_by_place=False,
        origin=Origin(at="now", who="me"),
        journal=None,
    )
    return PlanReport(name="log", state=state, plan=make_plan(change, found), change=change)


@pytest.mark.parametrize("batching", Batching)
def test_what_is_shown_and_what_is_counted_are_all_steps_in_order(batching):
    random = Random(7)
    for _ in range(20):
        report, shown = report_of(random, batching), random.choice((None, 0, 1, 3, 100))
        texts = [item.text for item in step_items(report, shown)]
        at, numbers = 0, {True: 0, False: 0}
        for text in texts:
            left_out = LEFT_OUT.fullmatch(text)
            count = 1 if left_out is None else int(left_out[1])
            steps = report.plan.steps[at : at + count]
            adds = steps[0].adds
            assert {step.adds for step in steps} == {adds}
            if left_out is None:
                number = f"{steps[0].batch + 1}: " if batching is Batching.RESOURCE else ""
                assert text == f"{number}{'+' if adds else '-'} {acl_text(steps[0].acl)}"
                numbers[adds] += 1
            else:
                assert left_out[2] == ("add" if adds else "delete")
            at += count
        assert at == len(report.plan.steps)
        for adds, number in numbers.items():
            total = sum(step.adds is adds for step in report.plan.steps)
            assert number == (total if shown is None else min(total, shown))
