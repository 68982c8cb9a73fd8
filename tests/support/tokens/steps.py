"""The steps of the token script, in order: each asks as somebody, and returns what it was told."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.support.nodes.wire_client import ClosedError, RefusedError
from tests.support.processes.waiting import wait_until
from tests.support.tokens.client import CLUSTER, DELEGATION_TOKEN, USER, TokenClient, outcome, token_password

DESCRIBE_ACLS, METADATA, CREATE_TOKENS, DESCRIBE_TOKENS, DESCRIBE = 29, 3, 13, 14, 8
BOB = (("User", "bob"),)
HOUR = 3_600_000
ANYTHING = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
ANYTHING |= {"resource_name_filter": None, "principal_filter": None, "host_filter": None}


def for_oneself_in_every_version(c: TokenClient) -> Any:
    return [c.create("alice", f"own v{version}", version, renewers=BOB) for version in (1, 2, 3)]


def lifetimes(c: TokenClient) -> Any:
    times = (0, -2, 600_000, HOUR, 90 * 60_000, 3 * HOUR, 10**15)
    return [c.create("dave", f"lifetime {lifetime}", lifetime=lifetime) for lifetime in times]


def for_another_without_permission(c: TokenClient) -> Any:
    return [
        c.create("alice", owner=("User", "carol")),
        c.create("alice", owner=("User", "alice"), name="own by name"),
        c.create("alice", owner=(None, None), name="own by null"),
        c.create("alice", owner=("Group", "")),
        c.create("alice", owner=("Group", "alice")),
        c.create("alice", owner=("User", "carol"), renewers=(("Group", "g"),)),
        c.create("alice", renewers=(("User", "bob"), ("Group", "g"))),
        c.create("alice", renewers=(("", "x"),)),
    ]


def for_another_with_permission(c: TokenClient) -> Any:
    allowed = c.allow("alice", CREATE_TOKENS, USER, "User:carol")
    token = c.create("alice", "carol's by alice", owner=("User", "carol"), renewers=BOB)
    return [allowed, token, c.create("alice", owner=("User", "carol"), renewers=(("Group", "g"),))]


def for_another_as_super_user(c: TokenClient) -> Any:
    return [
        c.create("admin", "owner1's", owner=("User", "owner1")),
        c.create("admin", "a group's", owner=("Group", "g")),
        c.create("admin", "nameless type", owner=("", "x")),
        c.create("admin", "with a colon", owner=("User", "a:b"), renewers=(("User", "c:d"), ("User", ""))),
        c.create("admin", owner=(None, "x")),
    ]


def renewing(c: TokenClient) -> Any:
    return [
        c.renew("alice", "own v3"),
        c.renew("alice", "own v3", 600_000),
        c.renew("alice", "own v3", 0, version=1),
        c.renew("alice", "own v3", 10**15),
        c.renew("bob", "own v3", 1_200_000),
        c.renew("dave", "own v3"),
        c.renew("admin", "own v3"),
        c.renew("alice", "carol's by alice"),
        c.renew("carol", "carol's by alice", 1_800_000),
        c.renew("alice", "no such HMAC"),
        c.renew("alice", ""),
        c.renew("dave", f"lifetime {600_000}", HOUR),
    ]


def expiring(c: TokenClient) -> Any:
    return [
        c.expire("alice", "own v2", 600_000),
        c.expire("bob", "own v2", 10**15, version=1),
        c.expire("dave", "own v2"),
        c.expire("admin", "own v2"),
        c.expire("alice", "carol's by alice"),
        c.expire("alice", "no such HMAC"),
        c.expire("alice", "own v2"),
        c.expire("alice", "own v2"),
        c.renew("alice", "own v2"),
    ]


def expired(c: TokenClient) -> Any:
    began = c.expire("alice", "own v1", 0)
    time.sleep(0.002)  # a token has expired in the millisecond after its expiry time
    return [
        began,
        c.renew("alice", "own v1"),
        c.renew("dave", "own v1"),
        c.expire("alice", "own v1", 0),
        c.expire("dave", "own v1", 0),
        c.expire("dave", "own v1"),
        c.describe("alice", ("User:alice",)),
        c.expire("bob", "own v1"),
        c.renew("alice", "own v1"),
    ]


def describing(c: TokenClient) -> Any:
    owner_lists = (
        None,
        (),
        ("User:alice",),
        ("User:bob",),
        ("User:carol", "User:owner1"),
        ("Group:g",),
        ("User:nobody",),
    )
    return {user: [c.describe(user, owners) for owners in owner_lists] for user in ("alice", "bob", "carol", "admin")}


def describing_in_every_version(c: TokenClient) -> Any:
    return [c.describe("bob", None, version) for version in (1, 2, 3)]


def describing_by_permission(c: TokenClient) -> Any:
    before = c.describe("dave", ("User:alice", "User:carol"))
    on_token = c.allow("dave", DESCRIBE, DELEGATION_TOKEN, c.ids["own v3"])
    by_token = c.describe("dave", ("User:alice", "User:carol"))
    on_user = c.allow("dave", DESCRIBE_TOKENS, USER, "User:carol")
    return [before, on_token, by_token, on_user, c.describe("dave", ("User:alice", "User:carol"))]


def logging_in(c: TokenClient) -> Any:
    token_id = c.ids["own v3"]
    word = token_password(token_id)
    lifetimes = [
        round(c.log_in("own v3", mechanism).session_lifetime_ms / 60_000)
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    ]
    tries = [
        (token_id, "another"),
        ("no-such-token", word),
        (token_id, word, "SCRAM-SHA-256", ""),
        (token_id, word, "SCRAM-SHA-256", ",tokenauth=false"),
        ("admin", "admin-secret", "SCRAM-SHA-256"),
        (c.ids["own v3"], token_password(c.ids["carol's by alice"])),
    ]
    return [lifetimes, *(outcome(lambda one=one: c.log_in_as(*one).session_lifetime_ms) for one in tries)]


def acting_by_a_token(c: TokenClient) -> Any:
    by = c.log_in("own v3", "SCRAM-SHA-512")
    denied = int(by.ask(DESCRIBE_ACLS, 3, **ANYTHING).error_code)
    c.allow("alice", DESCRIBE, CLUSTER, "kafka-cluster")
    return [
        denied,
        int(by.ask(DESCRIBE_ACLS, 3, **ANYTHING).error_code),
        c.create("", by=by),
        c.create("", by=by, version=1),
        c.create("", owner=("User", "carol"), by=by),
        c.renew("", "own v3", by=by),
        c.expire("", "own v3", by=by),
        c.describe("", None, by=by),
        c.describe("", (), by=by),
    ]


def logins_after_the_end(c: TokenClient) -> Any:
    by = c.log_in("own by name")
    removed = c.expire("alice", "own by name")
    late = outcome(lambda: c.log_in("own by name").session_lifetime_ms)
    return [removed, late, int(by.ask(METADATA, 1, topics=()).brokers[0].node_id)]


def a_session_ends_with_its_token(c: TokenClient) -> Any:
    """Of one that lives long enough for a login and a request, however slow the machine is."""
    for lifetime in (1000 * 2**tried for tried in range(8)):
        c.create("alice", "short", lifetime=lifetime)
        with suppress(RefusedError, ClosedError):
            by = c.log_in("short")
            before = len(by.ask(METADATA, 1, topics=()).brokers)
            wait_until(lambda by=by: outcome(lambda: by.ask(METADATA, 1, topics=())) == "closed", "its end", every=0.05)
            return [before, 0 < by.session_lifetime_ms < lifetime, "closed"]
    raise AssertionError("no token lived long enough for a request")


def over_plaintext(c: TokenClient) -> Any:
    return [
        c.create("nobody"),
        c.create("nobody", owner=("User", "carol"), renewers=(("Group", "g"),)),
        c.renew("nobody", "own v3"),
        c.expire("nobody", "own v3"),
        c.describe("nobody", None),
    ]


def without_a_secret(c: TokenClient) -> Any:
    return [
        c.create("alice", version=1),
        c.create("alice"),
        c.create("alice", owner=("User", "carol")),
        c.create("admin", owner=("User", "carol")),
        c.create("alice", renewers=(("Group", "g"),)),
        c.renew("alice", "no such HMAC"),
        c.expire("alice", "no such HMAC"),
        c.describe("alice", None),
        c.describe("alice", ()),
    ]


STEPS: tuple[Callable[[TokenClient], Any], ...] = (
    for_oneself_in_every_version, lifetimes, for_another_without_permission, for_another_with_permission,
    for_another_as_super_user, renewing, expiring, expired, describing, describing_in_every_version,
    describing_by_permission, logging_in, acting_by_a_token, logins_after_the_end, a_session_ends_with_its_token,
    over_plaintext,
)  # fmt: skip
OFF_STEPS: tuple[Callable[[TokenClient], Any], ...] = (without_a_secret, over_plaintext)
