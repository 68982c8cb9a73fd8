"""Who sees his own rights only sees the same, to the byte, whatever others' rules and super users are."""

import re
from itertools import product
from pathlib import Path
from urllib.parse import quote

import pytest
from attrs import evolve

from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.config import parse_super_users
from aclog.authorizer.settings import Settings
from aclog.cli.console.run import settings_words
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.console.login.password_way import PasswordWay
from aclog.console.pages.command_line import CommandLine
from aclog.console.pages.console import Console
from aclog.console.pages.views import VIEWS
from aclog.console.web.app import WebConsole
from aclog.snapshots.provenance import Provenance
from tests.support.builders.acls import acl, cluster_acl
from tests.support.web.browser import Browser
from tests.support.web.consoles import console_of, look
from tests.support.web.guarded import guard_of
from tests.support.web.points import HeldSource, image_of

DENY = AclPermissionType.DENY
PASSWORD = "password"
HASH = "$argon2id$v=19$m=8,t=1,p=1$jEMj43rAEBu0OWZ282/o+Q$/GWgmwCZoBsHXh/7absn2rZtdF5BTea4C+5lio6o75E"
OWN = (
    acl("orders", "User:alice"),
    acl("orders.", "User:alice", operation=AclOperation.WRITE, pattern_type=PatternType.PREFIXED),
    acl("orders.eu", "User:alice", permission_type=DENY, operation=AclOperation.WRITE),
    acl("news", "User:*"),
    acl("news", "User:*", "10.0.0.66", permission_type=DENY),
)
ONE = (
    cluster_acl("User:admin", AclOperation.DESCRIBE),
    acl("orders", "User:bob"),
    acl("orders", "User:alicea", permission_type=DENY),
    acl("secret-plans", "User:bob", operation=AclOperation.ALL),
    acl("*", "User:carol", "10.9.9.9"),
    acl("orders", "Group:staff", pattern_type=PatternType.PREFIXED),
    acl("payroll", "User:bob", resource_type=ResourceType.GROUP),
)
OTHER = (acl("orders", "User:dave", operation=AclOperation.DELETE), *(acl(f"x{n}", "User:eve") for n in range(40)))
OTHERS = (
    "User:bob",
    "secret-plans",
    "",
    "alicea",
    "orders",
    "User:root",
    "User:*",
    "*",
    "10.9.9.9",
    "Group:staff",
    "payroll",
)
VALUES = {
    "name": ("User:alice", "secret-plans", "orders", "news", "payroll", "User:bob", "*", "x1"),
    "principal": ("User:alice", "User:bob", "User:dave", "User:*", "User:root", ""),
    "operation": ("READ", "WRITE", "ALL", "any"),
    "type": ("TOPIC", "GROUP", "CLUSTER"),
    "q": OTHERS,
    "prefix": ("", "s", "o", "x", "secret-"),
    "resource": ("", "secret-plans", "x1"),
    "host": ("", "10.9.9.9", "10.0.0.66"),
    "as_of": ("", "0", "7"),
    "pattern": ("prefixed", "literal"),
    "permission": ("DENY",),
    "first": ("0", "3", "1000"),
    "intent": ("consume", "produce"),
}  # fmt: skip
PAIRS = (("principal", "name"), ("name", "operation"), ("type", "name"), ("q", "first"), ("principal", "operation"))
STARTED = re.compile(r"\b\d{13}-\d+")
TOKEN = re.compile(r"\b[0-9a-f]{64}\b")


def asked() -> list[str]:
    """Queries of pages: each parameter alone, pairs of them, and whole requests."""
    single = [f"{name}={quote(value)}" for name, values in VALUES.items() for value in values]
    pairs = [f"{a}={quote(x)}&{b}={quote(y)}" for a, b in PAIRS for x, y in product(VALUES[a], VALUES[b])]
    whole = [
        f"principal={quote(who)}&operation={operation}&type=TOPIC&name={quote(name)}&host={host}"
        for who, operation, name, host in product(
            ("User:alice", "User:bob"),
            ("READ", "WRITE"),
            ("orders", "secret-plans", "orders.eu", "news"),
            ("", "10.0.0.66"),
        )
    ]
    return ["", *single, *pairs, *whole]


def alice(path: Path, others: tuple, super_users: str) -> tuple[Browser, Console]:
    """Alice, and the console of these rules where she has logged in."""
    flags = AuthorizerFlags(super_users=super_users)
    settings = Settings(super_users=parse_super_users(super_users))
    image = image_of(*OWN, *others).at(Provenance(end_offset=90, epoch=1, timestamp=1_700_000_000_000))
    console = console_of(HeldSource(image), settings=settings)
    command = CommandLine(source=("--log", "d"), settings=tuple(settings_words(flags)))
    way = PasswordWay.read(path)
    guard = guard_of(way, newest=lambda: image, settings=settings)
    browser = Browser(WebConsole(console=evolve(console, command=command), guard=guard).app())
    browser.get("/login")
    assert browser.post("/login", {"name": "alice", "password": PASSWORD}).status == 303
    return browser, console


@pytest.mark.slow(10)
def test_one_sees_the_same(tmp_path: Path) -> None:
    path = tmp_path / "logins"
    path.write_text(f"User:alice:{HASH}\n")
    path.chmod(0o600)
    both = alice(path, ONE, "User:root"), alice(path, OTHER, "User:boss;User:chief")
    statuses = set()
    for page, query, form in product((*VIEWS, "/live", "/none"), asked(), ("", "json")):
        address = f"{page}?{query}&format={form}"
        for _, console in both:
            look(console)
        replies = [browser.get(address) for browser, _ in both]
        assert seen(replies[0].text) == seen(replies[1].text), address
        assert replies[0].status == replies[1].status
        statuses.add(replies[0].status)
    assert statuses == {200, 400, 403, 404}


def seen(text: str) -> str:
    """A page without what is of its console's start, and of the session."""
    return TOKEN.sub("token", STARTED.sub("version", text))
