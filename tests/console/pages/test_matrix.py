"""Matrices have the decisions of the authorizer; what is offered beside a result is true of it, or is not offered."""

from random import Random

import pytest

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import SUPPORTED_OPERATIONS, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import Action, RequestContext
from aclog.console.pages.page import Links, Mark, Parameters
from aclog.console.pages.views import VIEWS
from tests.support.builders.acls import acl
from tests.support.web.consoles import column, console_of, table, view
from tests.support.web.points import HeldSource, image_of

DENY = AclPermissionType.DENY
HOSTS = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
OPERATIONS = (AclOperation.READ, AclOperation.WRITE, AclOperation.ALTER, AclOperation.ALL, AclOperation.DESCRIBE)


def some_rules(random: Random) -> list:
    return [
        acl(
            random.choice(["t", "ta", "x"]),
            random.choice(["User:a", "User:b", "User:c"]),
            random.choice(["*", *HOSTS[:2]]),
            operation=random.choice(OPERATIONS),
            pattern_type=random.choice([PatternType.LITERAL, PatternType.PREFIXED]),
            permission_type=random.choice([AclPermissionType.ALLOW, AclPermissionType.ALLOW, DENY]),
        )
        for _ in range(random.randint(1, 9))
    ]


@pytest.mark.parametrize("seed", range(30))
def test_a_matrix_has_the_decisions_of_the_authorizer(seed) -> None:
    console = console_of(HeldSource(image_of(*dict.fromkeys(some_rules(Random(seed))))))
    page = view(console, "/resource", type="TOPIC", name="ta")
    authorizer = console.states.now().authorizer
    pattern = ResourcePattern(resource_type=ResourceType.TOPIC, name="ta")
    rows = {row.cells[0].text: row.cells[1:] for each in page.tables() if each.key == "matrix" for row in each.rows}
    for principal in ("User:a", "User:b", "User:c"):
        for place, operation in enumerate(SUPPORTED_OPERATIONS[ResourceType.TOPIC]):
            action = Action(operation=operation, resource_pattern=pattern)
            decisions = {
                bool(authorizer.decide(RequestContext(principal=principal, host=host), action)) for host in HOSTS
            }
            shown = rows[principal][place].text if principal in rows else ""
            expected = {True} if shown == "yes" else {False} if not shown else {True, False}
            assert decisions == expected, (principal, operation, shown)


def test_principals_with_most_operations_come_first() -> None:
    rules = (
        acl("t", "User:few"),
        acl("t", "User:all", operation=AclOperation.ALL),
        acl("t", "User:a", operation=OPERATIONS[1]),
    )
    page = view(console_of(HeldSource(image_of(*rules))), "/resource", type="TOPIC", name="t")
    assert column(page, "matrix", "who") == ["User:all", "User:a", "User:few"]


@pytest.mark.parametrize("kind", SUPPORTED_OPERATIONS)
def test_each_operation_and_intent_that_is_offered_can_be_shown(kind) -> None:
    console = console_of(HeldSource(image_of(acl("t", "User:a"))))
    for name in ("t", "t*"):
        page = view(console, "/resource", type=kind.name, name=name)
        [links] = [part for part in page.parts if isinstance(part, Links) and part.key == "operations"]
        texts = [link.text for link in links.links]
        assert texts[1 : 1 + len(SUPPORTED_OPERATIONS[kind])] == [each.name for each in SUPPORTED_OPERATIONS[kind]]
        assert ("consume" in texts) is (kind in (ResourceType.TOPIC, ResourceType.GROUP))
        for link in links.links:
            assert link.url is not None
            assert VIEWS["/resource"](console, Parameters.of(link.url.partition("?")[2])).title


def test_the_operations_of_a_request_are_decided_as_each_is() -> None:
    rules = acl("t", "User:a"), acl("t", "User:a", operation=AclOperation.WRITE, permission_type=DENY)
    console = console_of(HeldSource(image_of(*rules)))
    page = view(console, "/why", principal="User:a", operation="READ", name="t")
    [row] = table(page, "operations").rows
    for name, cell in zip((each.key for each in table(page, "operations").columns), row.cells, strict=True):
        assert cell.url is not None
        alone = VIEWS["/why"](console, Parameters.of(cell.url.partition("?")[2]))
        assert alone.answer.startswith(cell.text.removesuffix(" (this)")), name


def test_deciding_rules_are_shown_and_others_are_folded() -> None:
    others = [acl("t", f"User:other-{number}") for number in range(30)]
    page = view(
        console_of(HeldSource(image_of(acl("t", "User:a"), *others))),
        "/why",
        principal="User:a",
        operation="READ",
        name="t",
    )
    assert [row.cells[0].text for row in table(page, "rules").rows] == ["decides"]
    others = table(page, "others")
    assert others.is_folded
    assert {row.cells[0].text for row in others.rows} == {"other principal"}
    assert (table(page, "rules").total, others.total) == (1, 30)
    keys = [part.key for part in page.parts]
    assert keys.index("remedy") < keys.index("rules")


@pytest.mark.parametrize(
    ("path", "fields", "command"),
    [
        ("/rules", {}, "aclog acls list --log 'a dir'"),
        ("/rules", {"q": "t"}, None),
        ("/rules", {"principal": "User:a"}, "aclog acls list --log 'a dir' --principal User:a"),
        ("/rules", {"principal": "User:"}, None),
        ("/rules", {"principal": "User:a", "operation": "READ"}, None),
        ("/rules", {"as_of": "0"}, "aclog acls list --log 'a dir' --as-of 0"),
        ("/names", {"prefix": "t"}, None),
        ("/principal", {}, None),
        (
            "/principal", {"name": "User:a", "host": "10.0.0.1"},
            "aclog what-can --log 'a dir' --principal User:a --host 10.0.0.1",
        ),
        ("/resource", {"name": "t"}, "aclog who-can --log 'a dir' --topic t"),
        ("/resource", {"name": "t", "host": "10.0.0.1"}, "aclog who-can --log 'a dir' --topic t --host 10.0.0.1"),
        ("/search", {"q": "t"}, None),
        ("/", {}, None),
    ],
)  # fmt: skip
def test_the_same_on_a_command_line_is_the_same_or_is_not_shown(path, fields, command) -> None:
    console = console_of(HeldSource(image_of(acl("t", "User:a"), acl("u", "User:b"))))
    assert view(console, path, **fields).command == command


def test_access_for_everyone_is_of_high_risk_and_lost_access_of_low() -> None:
    console = console_of(HeldSource(image_of(acl("t", "User:a"), acl("t", "User:a", operation=AclOperation.WRITE))))
    rules = "+ ALLOW User:* READ on TOPIC u\n+ ALLOW User:b DELETE on TOPIC v\n- ALLOW User:a WRITE on TOPIC t"
    effect = table(view(console, "/draft", rules=rules), "effect")
    looks = {tuple(cell.text for cell in row.cells[:3]): row.look for row in effect.rows}
    assert looks == {
        ("high", "GAINED", "everyone"): Mark.HIGH,
        ("medium", "GAINED", "User:b"): Mark.MEDIUM,
        ("low", "LOST", "User:a"): Mark.LOW,
    }
    assert [row.cells[0].text for row in effect.rows] == ["high", "medium", "low"]
    assert [row.cells[0].mark for row in effect.rows] == [Mark.HIGH, Mark.MEDIUM, Mark.LOW]
    assert {row.mark for row in effect.rows} == {Mark.GAINED, Mark.LOST}, "which JSON has"
