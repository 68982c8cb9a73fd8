"""SASL logins end to end: each mechanism with each client, and failures."""

import pytest

from aclog.authorizer.settings import KafkaPrincipal
from aclog.config.node_config import ClientSecurity, HostPort, Listener
from aclog.credentials import scram as scram_module
from aclog.credentials.scram import ScramMechanism
from aclog.metalog.errors import ConfigError
from aclog.metalog.records import UserScramCredentialRecord
from aclog.protocol.session import SecurityProtocol
from aclog.security.sasl import (
    MECHANISMS,
    AuthenticationError,
    AuthenticationNotReadyError,
    Credentials,
    TokenCredential,
    sasl_client,
    sasl_server,
)

SCRAM = [mechanism.mechanism_name for mechanism in ScramMechanism]
ALICE = KafkaPrincipal(type="User", name="alice")


def credential(name, mechanism, password, iterations=4096):
    salted = scram_module.salted_password(mechanism, password, b"salt", iterations)
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism,
        salt=b"salt",
        stored_key=scram_module.stored_key(mechanism, scram_module.client_key(mechanism, salted)),
        server_key=scram_module.server_key(mechanism, salted),
        iterations=iterations,
    )


class Users(Credentials):
    decoy_key = b"of a cluster"

    def __init__(self, users, ready=True):
        self.users, self.is_ready = users, ready

    @property
    def ready(self):
        return self.is_ready

    def scram(self, user, mechanism):
        return credential(user, mechanism, self.users[user]) if user in self.users else None


class Tokens(Users):
    tokens_enabled = True

    def token(self, token_id, mechanism):
        hmac = self.users.get(token_id)
        if hmac is None:
            return None
        return TokenCredential(owner=ALICE, expiry_ms=77, credential=credential(token_id, mechanism, hmac))


def listener(**changes):
    values = {
        "name": "SASL",
        "bind": HostPort(host="", port=9092),
        "advertised": HostPort(host="localhost", port=9092),
        "security_protocol": SecurityProtocol.SASL_PLAINTEXT,
        "sasl_mechanisms": MECHANISMS,
        "plain_users": {"alice": "secret", "": "nobody", "open": ""},
    }
    return Listener(**(values | changes))


def server_of(mechanism, credentials=None, **options):
    return sasl_server(mechanism, listener=listener(), credentials=credentials or Users({"alice": "secret"}), **options)


def client_of(mechanism, user="alice", password="secret", **options):
    return sasl_client(ClientSecurity(sasl_mechanism=mechanism, username=user, password=password, **options))


def log_in(client, server):
    message = client.first()
    while message is not None:
        message = client.step(server.step(message))
    assert client.complete
    assert server.complete
    return server


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_login(mechanism):
    server = log_in(client_of(mechanism), server_of(mechanism))
    assert server.mechanism == mechanism
    assert server.principal == ALICE
    assert not server.token_authenticated
    assert server.expiry_ms is None


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_nobody_is_authenticated_before_completion(mechanism):
    with pytest.raises(AuthenticationError, match="not complete"):
        _ = server_of(mechanism).principal


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [("alice", "Secret"), ("alice", "secret "), ("bob", "secret")])
def test_no_such_user_and_a_wrong_password_look_the_same(mechanism, user, password):
    client, server = client_of(mechanism, user, password), server_of(mechanism)
    message = client.first()
    if mechanism in SCRAM:
        message = client.step(server.step(message))
    with pytest.raises(AuthenticationError) as caught:
        server.step(message)
    generic = f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
    assert str(caught.value) == (
        generic if mechanism in SCRAM else "Authentication failed: Invalid username or password"
    )
    assert not server.complete


@pytest.mark.parametrize("mechanism", SCRAM)
def test_after_a_failure_the_right_password_is_refused(mechanism):
    server = server_of(mechanism)
    with pytest.raises(AuthenticationError):
        server.step(b"nonsense")
    with pytest.raises(AuthenticationError):
        server.step(client_of(mechanism).first())


@pytest.mark.parametrize("mechanism", SCRAM)
def test_a_failed_reauthentication_is_named_as_such(mechanism):
    with pytest.raises(AuthenticationError, match="during re-authentication due to"):
        server_of(mechanism, reauthentication=True).step(b"nonsense")


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize("user", ["alice", "bob"])
def test_before_replay_scram_is_not_ready(mechanism, user):
    server = server_of(mechanism, Users({"alice": "secret"}, ready=False))
    with pytest.raises(AuthenticationNotReadyError):
        server.step(client_of(mechanism, user).first())


def test_plain_needs_no_replay():
    log_in(client_of("PLAIN"), server_of("PLAIN", Users({}, ready=False)))


@pytest.mark.parametrize("mechanism", SCRAM)
def test_a_token_is_refused_where_tokens_are_not_enabled(mechanism):
    with pytest.raises(AuthenticationError, match="delegation tokens are not enabled"):
        server_of(mechanism).step(client_of(mechanism, token_auth=True).first())


@pytest.mark.parametrize("mechanism", SCRAM)
def test_a_token_logs_its_owner_in(mechanism):
    server = log_in(client_of(mechanism, "id1", "hmac", token_auth=True), server_of(mechanism, Tokens({"id1": "hmac"})))
    assert server.principal == ALICE
    assert server.token_authenticated
    assert server.expiry_ms == 77


@pytest.mark.parametrize("mechanism", SCRAM)
def test_tokens_and_users_are_separate(mechanism):
    for users, token_auth in ((Tokens({"other": "x"}), True), (Users({"other": "x"}), False)):
        client, server = client_of(mechanism, "id1", "hmac", token_auth=token_auth), server_of(mechanism, users)
        proof = client.step(server.step(client.first()))
        with pytest.raises(AuthenticationError, match="invalid credentials"):
            server.step(proof)


def test_a_mechanism_that_the_listener_does_not_offer():
    for mechanism, offered in (("PLAIN", ("SCRAM-SHA-256",)), ("GSSAPI", ("GSSAPI",)), ("PLAIN", ())):
        with pytest.raises(AuthenticationError, match="does not offer"):
            sasl_server(mechanism, listener=listener(sasl_mechanisms=offered), credentials=Users({}))


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0" * 9, "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0\0", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0open\0", "Authentication failed: password not specified"),
        (b"\0\xff\0secret", "Authentication failed: Invalid username or password"),
    ],
)
def test_malformed_plain_messages_get_kafkas_text(message, text):
    with pytest.raises(AuthenticationError) as refused:
        server_of("PLAIN").step(message)
    assert str(refused.value) == text


def test_plain_rejects_another_authorization_id():
    with pytest.raises(AuthenticationError, match="authorization id that is different from username"):
        server_of("PLAIN").step(b"bob\0alice\0secret")
    server = server_of("PLAIN")
    assert server.step(b"alice\0alice\0secret") == b""
    assert server.principal == ALICE


@pytest.mark.parametrize(
    "security",
    [
        ClientSecurity(sasl_mechanism="GSSAPI", username="a", password="b"),
        ClientSecurity(username="a", password="b"),
        ClientSecurity(sasl_mechanism="PLAIN", username="a"),
        ClientSecurity(sasl_mechanism="SCRAM-SHA-256", password="b"),
    ],
)
def test_a_client_that_cannot_log_in(security):
    with pytest.raises(ConfigError):
        sasl_client(security)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_secrets_are_not_in_reprs(mechanism):
    client, server = client_of(mechanism, password="hush"), server_of(mechanism, Users({"alice": "hush"}))
    message = client.first()
    if mechanism in SCRAM:
        message = client.step(server.step(message))
    assert "hush" not in repr(client) + repr(server) + repr(Tokens({}).token)
    assert "secret" not in repr(server)
