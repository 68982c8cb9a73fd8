"""AuthZEN's published interoperability rows, answered from plain rules and a mapping (tests/data/authzen/README.md)."""

import json
from pathlib import Path

import pytest

from aclog.console.pdp.mapping import read_mapping
from aclog.sources.acl_lines import read_acls
from tests.support.web.asgi import post
from tests.support.web.points import HeldSource, image_of, point_of

ROWS = Path(__file__).parents[2] / "data" / "authzen"


def rows(name):
    return [json.loads(line) for line in (ROWS / f"{name}.jsonl").read_text().splitlines()]


def app_of(name):
    rules = [rule.acl for rule in read_acls(str(ROWS / f"{name}-rules.jsonl"))]
    return point_of(HeldSource(image_of(*rules)), read_mapping(ROWS / f"{name}-mapping.yaml")).app()


@pytest.mark.parametrize(("name", "evaluations", "batches"), [("gateways", 25, 0), ("todo", 40, 3)])
def test_each_row_is_answered_as_published(name, evaluations, batches):
    app, asked = app_of(name), rows(name)
    assert [row["path"].endswith("s") for row in asked] == [False] * evaluations + [True] * batches
    for row in asked:
        answer = post(app, row["path"], row["request"]).json
        found = [each["decision"] for each in answer["evaluations"]] if "evaluations" in answer else answer["decision"]
        assert found == row["expected"], row


@pytest.mark.parametrize("name", ["gateways", "todo"])
def test_searches_find_what_the_rows_allow(name):
    app = app_of(name)
    for row in rows(name):
        asked = row["request"]
        if "evaluations" in asked:
            continue
        answer = post(app, "/access/v1/search/action", {key: asked[key] for key in ("subject", "resource")}).json
        assert (asked["action"] in answer["results"]) is row["expected"]
