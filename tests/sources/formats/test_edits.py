"""Edits of files of rules: the edited file states the rules of the edit, and all other text is as it was."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import FileOrigin, StandardAcl, object_of_rule
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.sources.choice import AclsSource
from aclog.sources.formats.edits import ARRAY, Edit, edited
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.writers import WRITERS, write_rules
from aclog.terminal.columns import json_text
from tests.support.builders.acls import acl

READ, WRITE = acl("orders", "User:alice"), acl("orders", "User:alice", operation=AclOperation.WRITE)
BOB = acl("pay.", "User:bob", pattern_type=PatternType.PREFIXED)
NEW = acl("news", "User:alice", permission_type=AclPermissionType.DENY, host="10.0.0.1")

SUFFIXES = {
    None: ".jsonl",
    ARRAY: ".json",
    AclsFormat.CSV: ".csv",
    AclsFormat.KSM: ".csv",
    AclsFormat.KAFKA_ACLS: ".txt",
}
FORMS = (None, ARRAY, AclsFormat.CSV, AclsFormat.KSM, AclsFormat.KAFKA_ACLS, AclsFormat.STRIMZI, AclsFormat.JIKKOU,
         AclsFormat.KAFKA_GITOPS)  # fmt: skip


def edit_of(text: str, form: str | None, removed: Sequence[StandardAcl], added: Sequence[StandardAcl]) -> str:
    """The edited text of a file that is read for its lines."""
    with tempfile.TemporaryDirectory() as folder:
        source = AclsSource(str(Path(folder, f"rules{SUFFIXES.get(form, '.yaml')}")))
        Path(source.path).write_bytes(text.encode())
        places = [(each, rule.acl) for rule in source.image().acls for each in source.origins.of(rule.acl)]
    stated = sorted(
        ((place.line, rule) for place, rule in places if isinstance(place, FileOrigin)), key=lambda one: one[0]
    )
    assert {place.form for place, _ in places if isinstance(place, FileOrigin)} <= {form}
    return edited(form, text, Edit(stated=stated, removed=frozenset(removed), added=added))


def rules_in(text: str, form: str | None) -> set[StandardAcl]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"rules{SUFFIXES.get(form, '.yaml')}")
        path.write_bytes(text.encode())
        return {rule.acl for rule in AclsSource(str(path)).image().acls}


STRIMZI = """\
# of the orders team
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata:
  name: alice
spec:
  authentication: {type: scram-sha-512}
  authorization:
    type: simple
    acls:
    - resource: {type: topic, name: orders}   # since 2020
      operations: [ Read ,Write]
    # the last one
    - resource:
        type: topic
        name: 'bills'
      operations:
      - Read   # for now
      - Write

---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata: {name: bob}
spec:
  authorization:
    type: simple
    acls:
      - resource: {type: topic, name: pay., patternType: prefix}
        operation: Read
"""
OF_ORDERS = "    - resource: {type: topic, name: orders}   # since 2020\n"
ADDED_TO_STRIMZI = """\
    - resource:
        type: topic
        name: "news"
        patternType: literal
      operations: [Read]
      host: "10.0.0.1"
      type: deny
"""


@pytest.mark.parametrize(
    ("removed", "added", "expected"),
    [
        ([READ], [], STRIMZI.replace("[ Read ,Write]", "[ Write]")),
        ([WRITE], [], STRIMZI.replace("[ Read ,Write]", "[ Read]")),
        ([acl("bills", "User:alice")], [], STRIMZI.replace("      - Read   # for now\n", "")),
        ([READ, WRITE], [],
         STRIMZI.replace(f"{OF_ORDERS}      operations: [ Read ,Write]\n", "")),
        ([BOB], [], STRIMZI.partition("    acls:\n      - ")[0] + "    acls: []\n"),
        ([], [NEW], STRIMZI.replace("      - Write\n", f"      - Write\n{ADDED_TO_STRIMZI}")),
        ([acl("bills", "User:alice", operation=AclOperation.WRITE)], [NEW],
         STRIMZI.replace("      - Write\n", ADDED_TO_STRIMZI)),
    ],
)  # fmt: skip
def test_comments_and_the_style_of_a_kafka_user_stay(
    removed: list[StandardAcl], added: list[StandardAcl], expected: str
) -> None:
    found = edit_of(STRIMZI, AclsFormat.STRIMZI, removed, added)
    assert found == expected
    before = rules_in(STRIMZI, AclsFormat.STRIMZI)
    assert rules_in(found, AclsFormat.STRIMZI) == before - set(removed) | set(added)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_a_mark_of_the_order_of_bytes_stay(form: str | None, end: str, mark: str) -> None:
    before = mark + text_of(form, [READ, WRITE, BOB]).replace("\n", end)
    assert rules_in(before, form) == {READ, WRITE, BOB}
    after = edit_of(before, form, [READ], [acl("news", "User:bob")])
    assert rules_in(after, form) == {WRITE, BOB, acl("news", "User:bob")}
    assert after.startswith(mark)
    if form not in (AclsFormat.KAFKA_ACLS, ARRAY):
        assert after.count("\n") == after.count(end)


@pytest.mark.parametrize(
    ("form", "text", "reason"),
    [
        (AclsFormat.STRIMZI, STRIMZI, "no entry states rules of User:carol only"),
        (AclsFormat.TERRAFORM, "", "files of the format terraform are not patched: only jsonl, csv, "),
    ],
)
def test_what_is_not_edited_has_a_reason(form: str, text: str, reason: str) -> None:
    edit = Edit(stated=[], removed=frozenset(), added=[acl("news", "User:carol")])
    with pytest.raises(ConfigError, match=reason):
        edited(form, text, edit)


def test_a_format_that_cannot_hold_a_rule_is_not_edited() -> None:
    new = acl("t", "User:alice", resource_type=ResourceType.DELEGATION_TOKEN)
    with pytest.raises(ConfigError, match="Strimzi has no resource of the type DELEGATION_TOKEN"):
        edit_of(STRIMZI, AclsFormat.STRIMZI, [], [new])


def text_of(form: str | None, rules: Sequence[StandardAcl]) -> str:
    """A file as our writers write it."""
    if form in WRITERS:
        return write_rules(AclsFormat(str(form)), rules)
    objects = [object_of_rule(each) for each in rules]
    if form is None:
        return "".join(f"{json_text(each)}\n" for each in objects)
    if form == ARRAY:
        return "[" + ",\n ".join(map(json_text, objects)) + "]\n"
    rows = [",".join(f'"{cell}"' if "," in cell else cell for cell in each.values()) for each in objects]
    return "".join(f"{row}\n" for row in (",".join(objects[0]), *rows))


NAMES = st.sampled_from(["orders", "a, b", "pii-", "x", "y: z", "ü"])
RULES = st.builds(
    acl,
    NAMES,
    st.sampled_from(["User:alice", "User:bob", "User:c.d"]),
    operation=st.sampled_from([AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE]),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    permission_type=st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY]),
    host=st.sampled_from(["*", "10.0.0.1"]),
)


@pytest.mark.parametrize("form", FORMS)
@given(st.lists(RULES, min_size=1, max_size=8, unique=True), st.data())
def test_an_edited_file_states_the_rules_of_the_edit(
    form: str | None, rules: list[StandardAcl], data: st.DataObject
) -> None:
    removed = data.draw(st.lists(st.sampled_from(rules), unique=True, max_size=len(rules) - 1))
    added = [each for each in data.draw(st.lists(RULES, unique=True, max_size=4)) if each not in rules]
    is_yaml = form in (AclsFormat.STRIMZI, AclsFormat.JIKKOU, AclsFormat.KAFKA_GITOPS)
    if is_yaml:
        added = [each for each in added if each.principal in {rule.principal for rule in rules}]
    before = text_of(form, rules)
    after = edit_of(before, form, removed, added)
    assert rules_in(after, form) == set(rules) - set(removed) | set(added)
    if not removed:
        lines = iter(after.splitlines())
        assert form == ARRAY or all(line in lines for line in before.splitlines())
