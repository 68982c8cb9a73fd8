"""Logins with delegation tokens: owner, expiry and secret."""

import pytest

from aclog.authorizer.settings import KafkaPrincipal
from aclog.config.node_config import ClientSecurity
from aclog.credentials.scram import ScramMechanism
from aclog.credentials.tokens import TokensImage, token_hmac
from aclog.metalog.records import DelegationTokenRecord
from aclog.protocol.session import SecurityProtocol
from aclog.security.principals import AuthenticationError
from aclog.security.sasl import PublishedCredentials, ScramServer, sasl_client
from aclog.snapshots.image import Image, Provenance
from aclog.snapshots.publisher import Publisher

NOW = 1_800_000_000_000
SHA_256, SHA_512 = ScramMechanism
TOKEN = DelegationTokenRecord(
    owner="User:a:b",
    requester="User:admin",
    renewers=(),
    issue_timestamp=NOW,
    max_timestamp=NOW + 2000,
    expiration_timestamp=NOW + 1000,
    token_id="the-id",
)


@pytest.fixture
def now():
    return [NOW]


@pytest.fixture
def credentials(now):
    publisher = Publisher()
    provenance = Provenance(end_offset=1, epoch=1, timestamp=NOW)
    publisher.replace(Image(tokens=TokensImage.EMPTY.apply([TOKEN]), provenance=provenance))
    publisher.observe_high_watermark(1)
    return made(publisher, token_secret="hush", clock=lambda: now[0])


def made(publisher, **options):
    return PublishedCredentials(publisher=publisher, replayed=lambda: publisher.ready, cluster_id="c", **options)


def log_in(credentials, password, user="the-id", mechanism=SHA_256, token_auth=True):
    server = ScramServer(scram_mechanism=mechanism, credentials=credentials)
    client = sasl_client(
        ClientSecurity(
            security_protocol=SecurityProtocol.SASL_SSL,
            sasl_mechanism=mechanism.mechanism_name,
            username=user,
            password=password,
            token_auth=token_auth,
        )
    )
    message = client.first()
    while message is not None:
        message = client.step(server.step(message))
    return server


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
def test_a_token_authenticates_its_owner(credentials, mechanism):
    for _ in range(2):
        login = log_in(credentials, token_hmac("hush", "the-id"), mechanism=mechanism)
        assert login.principal == KafkaPrincipal(type="User", name="a:b")
        assert login.token_authenticated
        assert login.expiry_ms == NOW + 1000


@pytest.mark.parametrize(
    "wrong",
    [
        {"password": "hush"},
        {"password": token_hmac("another", "the-id")},
        {"password": token_hmac("hush", "no-id"), "user": "no-id"},
        {"token_auth": False},
    ],
)
def test_a_wrong_proof_fails(credentials, wrong):
    with pytest.raises(AuthenticationError, match="invalid credentials"):
        log_in(credentials, **{"password": token_hmac("hush", "the-id")} | wrong)


def test_an_expired_token_fails(credentials, now):
    password = token_hmac("hush", "the-id")
    now[0] = NOW + 999
    log_in(credentials, password)
    now[0] = NOW + 1000
    with pytest.raises(AuthenticationError, match="invalid credentials"):
        log_in(credentials, password)


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
def test_a_salt_does_not_tell_whether_there_is_such_a_token(credentials, now, mechanism):
    def challenge(asked):
        server = ScramServer(scram_mechanism=mechanism, credentials=asked, nonce=lambda: "the-nonce")
        return server.step(b"n,,n=the-id,r=abc,tokenauth=true")

    known, elsewhere = challenge(credentials), challenge(made(credentials.publisher, token_secret="hush"))
    now[0] = NOW + 1000
    assert credentials.token("the-id", mechanism) is None
    assert challenge(credentials) == known == elsewhere


def test_without_a_secret_there_are_no_tokens(credentials):
    off = made(credentials.publisher)
    assert credentials.tokens_enabled
    assert not off.tokens_enabled
    with pytest.raises(AuthenticationError, match="not enabled"):
        log_in(off, token_hmac("", "the-id"))
    assert off.token("the-id", SHA_256) is None


def test_credentials_are_cached_within_bounds(credentials, monkeypatch):
    monkeypatch.setattr("aclog.security.sasl._REMEMBERED", 1)
    first = credentials.token("the-id", SHA_256)
    assert credentials.token("the-id", SHA_256).credential is first.credential
    credentials.token("the-id", SHA_512)
    assert credentials.token("the-id", SHA_256).credential is not first.credential
    assert "hush" not in repr(credentials) + repr(first)
