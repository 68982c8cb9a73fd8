"""Delegation tokens at a broker: checks before forwarding, and visibility of tokens."""

import asyncio

import pytest
from attrs import evolve

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.standard import StandardAuthorizer
from aclog.credentials.tokens import TokenSettings, TokensImage, token_hmac_bytes
from aclog.metalog.records import DelegationTokenRecord
from aclog.protocol import api_keys
from aclog.protocol.acls import token_created_response
from aclog.protocol.headers import RequestError
from aclog.protocol.messages import build
from aclog.protocol.session import ANONYMOUS, SecurityProtocol
from aclog.server.apis.acls import AuthHelper
from aclog.server.broker.apis import BrokerTokenApis
from aclog.snapshots.image import Image, Provenance
from aclog.snapshots.publisher import Publisher
from tests.support.builders.acls import acl
from tests.support.nodes.node_requests import answer, request
from tests.support.tokens import answers as token_answers

USER, TOKEN = ResourceType.USER, ResourceType.DELEGATION_TOKEN


class Forwarded:
    async def forward(self, asked):
        return b"forwarded"

    async def close(self):
        pass


def rule(operation, kind, name, user="bob"):
    return StandardAclWithId(id=None, acl=acl(name, f"User:{user}", operation=operation, resource_type=kind))


def token(token_id, owner, requester, *renewers):
    return DelegationTokenRecord(
        owner=f"User:{owner}", requester=f"User:{requester}", renewers=tuple(f"User:{each}" for each in renewers),
        issue_timestamp=1, max_timestamp=3, expiration_timestamp=2, token_id=token_id,
    )  # fmt: skip


TOKENS = [token("1", "alice", "alice"), token("2", "carol", "alice", "dave"), token("3", "eve", "eve", "bob")]


def broker(*rules, secret="hush", tokens=()):
    publisher = Publisher()
    provenance = Provenance(end_offset=1, epoch=1, timestamp=1)
    publisher.replace(Image(tokens=TokensImage.EMPTY.apply(tokens), provenance=provenance))
    publisher.observe_high_watermark(1)
    authorizer = StandardAuthorizer()
    authorizer.configure({"super.users": "User:admin"})
    authorizer.load(AclsImage.from_acls(rules))
    authorizer.complete_initial_load()
    return BrokerTokenApis(
        publisher=publisher,
        auth=AuthHelper(authorizer),
        forwarder=Forwarded(),
        settings=TokenSettings(secret=secret),
    )


def asked(api_key, version, user="bob", session=None, **fields):
    made = request(api_key, version, build(api_key, version, "request", **fields), user, "BROKER")
    changes = {"security_protocol": SecurityProtocol.SASL_PLAINTEXT} | (session or {})
    return evolve(made, session=evolve(made.session, **changes))


def create(handler, version=3, user="bob", session=None, **fields):
    wanted = {"owner_principal_type": "", "owner_principal_name": ""} | fields
    body = asyncio.run(handler.create(asked(api_keys.CREATE_DELEGATION_TOKEN, version, user, session, **wanted)))
    return body if body == b"forwarded" else token_answers.created(version, bytes(4 + (version >= 2)) + body)


def renewer(kind):
    return build(
        api_keys.CREATE_DELEGATION_TOKEN, 3, "request", "CreatableRenewers", principal_type=kind, principal_name="x"
    )


def described(handler, owners, user="bob", version=3, session=None):
    def owner(name):
        return build(
            api_keys.DESCRIBE_DELEGATION_TOKEN, version, "request", "DescribeDelegationTokenOwner",
            principal_type="User", principal_name=name,
        )  # fmt: skip

    named = None if owners is None else tuple(owner(name) for name in owners)
    wanted = asked(api_keys.DESCRIBE_DELEGATION_TOKEN, version, user, session, owners=named)
    return answer(api_keys.DESCRIBE_DELEGATION_TOKEN, version, asyncio.run(handler.describe(wanted)))


NOT_ALLOWED = [
    {"security_protocol": SecurityProtocol.PLAINTEXT},
    {"security_protocol": SecurityProtocol.SSL, "principal": ANONYMOUS},
    {"token_authenticated": True},
]


@pytest.mark.parametrize("session", NOT_ALLOWED)
def test_connections_that_may_not_use_tokens(session):
    handler = broker(secret=None)
    found = create(handler, session=session, owner_principal_type="User", owner_principal_name="eve")
    assert (found["code"], found["times"], found["who"][1]) == (64, [-1, -1, -1], "eve")
    for api_key in (api_keys.RENEW_DELEGATION_TOKEN, api_keys.EXPIRE_DELEGATION_TOKEN):
        body = asyncio.run(handler.change(asked(api_key, 2, session=session, hmac=b"x")))
        assert token_answers.changed(2, bytes(5) + body) == (64, -1)
    assert described(handler, None, session=session).error_code == 64


@pytest.mark.parametrize(
    "session", [{}, {"security_protocol": SecurityProtocol.SSL}, {"principal": ANONYMOUS, "token_authenticated": False}]
)
def test_who_may(session):
    """Includes an authenticated user named ANONYMOUS."""
    handler = broker()
    assert create(handler, session=session) == create(handler, 1, session=session) == b"forwarded"
    for api_key in (api_keys.RENEW_DELEGATION_TOKEN, api_keys.EXPIRE_DELEGATION_TOKEN):
        assert asyncio.run(handler.change(asked(api_key, 2, session=session, hmac=b"x"))) == b"forwarded"
    assert described(handler, None, session=session).error_code == 0


def test_for_another():
    other = {"owner_principal_type": "User", "owner_principal_name": "eve"}
    assert create(broker(), **other)["code"] == 65
    assert create(broker(rule(AclOperation.CREATE_TOKENS, USER, "eve")), **other)["code"] == 65, "a name has its type"
    assert create(broker(rule(AclOperation.CREATE_TOKENS, USER, "User:eve")), **other) == b"forwarded"
    assert create(broker(), user="admin", **other) == b"forwarded"
    assert create(broker(), user="eve", **other) == b"forwarded"
    assert create(broker(), **other | {"owner_principal_name": None}) == b"forwarded"
    assert create(broker(), renewers=(renewer("Group"),), **other)["code"] == 65
    assert create(broker(), user="admin", renewers=(renewer("User"), renewer("Group")), **other)["code"] == 67
    with pytest.raises(RequestError) as failed:
        create(broker(), user="admin", owner_principal_type=None, owner_principal_name="x")
    assert failed.value.code == -1


def on_users(name, operation=AclOperation.CREATE_TOKENS, **more):
    return StandardAclWithId(id=None, acl=acl(name, "User:bob", operation=operation, resource_type=USER, **more))


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ([on_users("User:eve")], True),
        ([on_users("User:", pattern_type=PatternType.PREFIXED)], True),
        ([on_users("*")], True),
        ([on_users("User:eve", AclOperation.ALL)], True),
        ([on_users("User:eve", AclOperation.DESCRIBE_TOKENS)], False),
        ([on_users("User:carol")], False),
        ([on_users("*"), on_users("User:eve", permission_type=AclPermissionType.DENY)], False),
        ([on_users("*", permission_type=AclPermissionType.DENY), on_users("User:eve")], False),
    ],
)
def test_acls_on_users_say_for_whom_tokens_are_created(rules, allowed):
    found = create(broker(*rules), owner_principal_type="User", owner_principal_name="eve")
    assert found == b"forwarded" if allowed else found["code"] == 65


@pytest.mark.parametrize(
    ("rules", "user", "owners", "seen"),
    [
        ((), "alice", None, "12"),
        ((), "alice", [], ""),
        ((), "alice", ["alice"], "12"),
        ((), "alice", ["carol", "eve"], "2"),
        ((), "dave", None, "2"),
        ((), "bob", None, "3"),
        ((), "admin", None, "123"),
        ((), "admin", ["dave"], "2"),
        ((), "mallory", None, ""),
        ([rule(AclOperation.DESCRIBE, TOKEN, "1")], "bob", None, "13"),
        ([rule(AclOperation.DESCRIBE, TOKEN, "1")], "bob", ["carol"], ""),
        ([rule(AclOperation.DESCRIBE_TOKENS, USER, "User:carol")], "bob", None, "23"),
        ([rule(AclOperation.DESCRIBE_TOKENS, USER, "User:alice")], "bob", ["alice"], "1"),
    ],
)
def test_tokens_visible_to_a_client(rules, user, owners, seen):
    for version in (1, 2, 3):
        found = described(broker(*rules, tokens=TOKENS), owners, user, version)
        assert "".join(each.token_id for each in found.tokens) == seen
        assert all(each.hmac == token_hmac_bytes("hush", each.token_id) for each in found.tokens)


def test_without_a_secret_none_are_described():
    found = described(broker(secret=None, tokens=TOKENS), None, "admin")
    assert (found.error_code, found.tokens) == (61, ())


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("arrives", [True, False])
def test_a_creation_is_answered_once_the_token_is_replayed_or_after_a_timeout(version, arrives, monkeypatch):
    monkeypatch.setattr("aclog.server.broker.apis._REPLAY_SECONDS", 30 if arrives else 0.01)
    handler, made = broker(), token("new", "bob", "bob")

    class Late(Forwarded):
        async def forward(self, asked):
            if arrives:
                image = Image(tokens=TokensImage.EMPTY.apply([made]))
                asyncio.get_running_loop().call_later(0.01, handler.publisher.replace, image)
            return token_created_response(version, made, b"hmac")

    handler.forwarder = Late()
    assert create(handler, version)["token_id"] == "new"
    assert (handler.publisher.current.tokens.get("new") is not None) is arrives
