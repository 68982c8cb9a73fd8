"""Envoy's paths: what a server may read as another path is refused, or warned of where rules cannot hold it."""

import pytest

from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType
from aclog.authorizer.settings import Settings
from aclog.console.live import LiveState
from aclog.console.pdp.deciding import Deciders
from aclog.console.pdp.mapping import default_mapping, parse_mapping
from tests.support.builders.acls import acl
from tests.support.web.asgi import ask
from tests.support.web.points import HeldSource, image_of, point_of

ROUTES = {
    "subject": {"user": "User"}, "resource": {"route": "TOPIC"}, "action": {"route": {"GET": "READ"}},
    "envoy": {"subject": "user", "header": "X-User", "resource": "route"},
}  # fmt: skip
DENIED, PREFIXED = {"permission_type": AclPermissionType.DENY}, {"pattern_type": PatternType.PREFIXED}
OPEN, CLOSED = acl("/", "User:a", **PREFIXED), acl("/admin", "User:a", **DENIED)


@pytest.mark.parametrize(
    "path",
    [
        "/admin%23",
        "/admin%23/x",
        "/admin%3f",
        "/admin%3F/users",
        "/%3fadmin",
        "/x%23/../admin",
        "/admin#x",
        "/admin%3bx",
    ],
)
def test_the_ends_of_a_path_are_refused_as_escapes_too(path):
    app = point_of(HeldSource(image_of(OPEN, CLOSED)), parse_mapping(ROUTES, "it")).app()
    assert ask(app, "GET", f"/ext_authz{path}", headers={"X-User": "a"}).status == 403
    assert ask(app, "GET", "/ext_authz/orders", headers={"X-User": "a"}).status == 200


def warnings(*rules, mapping=ROUTES, settings=None):
    """What is said when the first state is there, and how often."""
    said = []
    live = LiveState(source=HeldSource(image_of(*rules)), seconds=60, tell=said.append)
    Deciders(
        live=live, settings=settings or Settings(), mapping=parse_mapping(mapping, "it"), max_age=60.0, warn=said.append
    )
    live._look()
    live._look()
    return said


@pytest.mark.parametrize(
    "rules",
    [
        (OPEN, CLOSED), (acl("*", "User:a"), CLOSED), (acl("/adm", "User:*", **PREFIXED), CLOSED),
        (acl("/admin", "User:b", **PREFIXED), acl("/admin", "User:*", **DENIED)),
        (OPEN, acl("/admin", "User:a", operation=AclOperation.ALL, **DENIED)),
        (acl("/", "User:a", operation=AclOperation.ALL, **PREFIXED), CLOSED),
        (OPEN, CLOSED, acl("/admin/", "User:b", **DENIED, **PREFIXED)),
    ],
)  # fmt: skip
def test_a_deny_that_other_ways_to_write_its_path_pass_is_warned_of(rules):
    [said] = warnings(*rules)
    assert "1 DENY rule on a single path below an allowed prefix" in said
    app = point_of(HeldSource(image_of(*rules)), parse_mapping(ROUTES, "it")).app()
    user = {"X-User": "b" if rules[0].principal == "User:b" else "a"}
    assert ask(app, "GET", "/ext_authz/admin", headers=user).status == 403
    for path in ("/admin.", "/admin%20", "/admin/", "/adminX"):
        assert ask(app, "GET", f"/ext_authz{path}", headers=user).status == 200, "the warning is true"


@pytest.mark.parametrize(
    "rules",
    [
        (), (OPEN,), (CLOSED,), (acl("/orders", "User:a"), CLOSED), (acl("/x", "User:a", **PREFIXED), CLOSED),
        (acl("/", "User:b", **PREFIXED), CLOSED), (OPEN, acl("/admin", "User:a", **DENIED, **PREFIXED)),
        (OPEN, CLOSED, acl("/admin", "User:a", **DENIED, **PREFIXED)), (OPEN, acl("*", "User:a", **DENIED)),
        (OPEN, acl("/admin", "User:a", resource_type=3, **DENIED)),
        (acl("/", "User:a", operation=AclOperation.WRITE, **PREFIXED), CLOSED),
    ],
)  # fmt: skip
def test_where_no_such_path_is_allowed_nothing_is_said(rules):
    assert warnings(*rules) == []


def test_a_warning_needs_envoy_and_follows_a_new_mapping():
    assert warnings(OPEN, CLOSED, mapping={}) == []
    everyone = Settings(allow_everyone=True)
    assert len(warnings(CLOSED, settings=everyone)) == 1, "a name without rules is allowed"
    said = []
    live = LiveState(source=HeldSource(image_of(OPEN, CLOSED)), seconds=60, tell=said.append)
    deciders = Deciders(live=live, settings=Settings(), mapping=default_mapping(), max_age=60.0, warn=said.append)
    live._look()
    assert said == []
    for _ in range(2):
        deciders.replace_mapping(parse_mapping(ROUTES, "it"))
    assert len(said) == 2, "once for each time that the files are read"
    assert "User:a on /admin:" in said[0]
    assert deciders.mapping.envoy is not None
