"""SCRAM by message: the RFC's example exchange, another implementation's client, and rejected messages."""

import string
import warnings
from base64 import b64decode, b64encode

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.credentials import scram as scram_module
from aclog.credentials.scram import ScramMechanism, credential_record
from aclog.metalog.errors import DecodeError
from aclog.security.principals import AuthenticationError, Credentials, saslprep
from aclog.security.sasl import MAX_BYTES, MAX_ITERATIONS, ScramClient, ScramServer, client_first, parse_client_first

SHA_256, SHA_512 = ScramMechanism
SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")

# RFC 7677, section 3
CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
SIGNED = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
CLIENT_FINAL = SIGNED + b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


class Stored(Credentials):
    decoy_key = b"of a cluster"

    def __init__(self, *records):
        self.records = {(record.name, record.mechanism): record for record in records}

    @property
    def ready(self):
        return True

    def scram(self, user, mechanism):
        return self.records.get((user, mechanism))


def record(user="user", password="pencil", mechanism=SHA_256, iterations=4096):
    salted = scram_module.salted_password(mechanism, password, SALT, iterations)
    return credential_record(user, mechanism, salt=SALT, salted_password=salted, iterations=iterations)


def server(*records, mechanism=SHA_256, **options):
    stored = Stored(*(records or [record()]))
    options = {"nonce": lambda: SERVER_NONCE} | options
    return ScramServer(scram_mechanism=mechanism, credentials=stored, **options)


def client(user="user", password="pencil", mechanism=SHA_256):
    return ScramClient(scram_mechanism=mechanism, username=user, password=password, nonce=lambda: CLIENT_NONCE)


def test_the_exchange_of_rfc_7677():
    one, other = client(), server()
    assert one.first() == CLIENT_FIRST
    assert other.step(CLIENT_FIRST) == SERVER_FIRST
    assert one.step(SERVER_FIRST) == CLIENT_FINAL
    assert not other.complete
    assert other.step(CLIENT_FINAL) == SERVER_FINAL
    assert other.complete
    assert not one.complete
    assert one.step(SERVER_FINAL) is None
    assert one.complete


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_the_client_of_kafka_python(mechanism):
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # its own, when it is imported
        from kafka.net.sasl.scram import ScramClient as KafkaPythonClient
    their = KafkaPythonClient("user", "pencil", mechanism.mechanism_name)
    ours = server(record(mechanism=mechanism), mechanism=mechanism)
    their.process_server_first_message(ours.step(their.first_message()))
    their.process_server_final_message(ours.step(their.final_message()))
    assert ours.complete


@pytest.mark.parametrize("mechanism", ScramMechanism)
@given(
    user=st.text(string.ascii_letters + ' =,"\x01\x7f', min_size=1),
    password=st.text(st.characters(exclude_categories=["Cs"])),
)
def test_any_ascii_name_and_any_password(mechanism, user, password):
    ours = server(record(user, password, mechanism, 4096), mechanism=mechanism)
    their = client(user, password, mechanism)
    their.step(ours.step(their.step(ours.step(their.first()))))
    assert their.complete
    assert ours.principal.name == user


def exchange_until_proof(ours, user="user", password="pencil"):
    their = client(user, password)
    return their.step(ours.step(their.first()))


@pytest.mark.parametrize(
    "change",
    [
        lambda final: final[:-5] + b"AAA" + final[-2:],
        lambda final: final.replace(b"c=biws", b"c=eSws"),
        lambda final: final.replace(b"c=biws", b"c=biwsAAAA"),
        lambda final: final.replace(b"k0,", b"k1,"),
        lambda final: final.replace(b"k0,", b"k0,x=y,"),
        lambda final: final[: final.index(b"p=")] + b"p=",
        lambda final: final[: final.index(b"p=")] + b"p=AAAA",
        lambda final: final[: final.index(b",p=")],
        lambda final: final + b",x=y",
        lambda final: final.replace(b"p=", b"p=*"),
        lambda final: final + b"=",
        lambda final: b"",
        lambda final: b"\xff" + final,
        lambda final: CLIENT_FIRST,
    ],
)
def test_an_invalid_final_message(change):
    ours = server()
    final = exchange_until_proof(ours)
    assert change(final) != final
    with pytest.raises(AuthenticationError, match="invalid credentials with SASL mechanism SCRAM-SHA-256"):
        ours.step(change(final))
    with pytest.raises(AuthenticationError):
        ours.step(final)
    assert not ours.complete


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n",
        b"n,,",
        b"n,,n=user",
        b"n,,n=,r=abc",
        b"n,,n=user,r=",
        b"n,,n=user,r=a c",
        b"n,,n=us=er,r=abc",
        b"n,,n=us=3der,r=abc",
        b"n,,n=us\x00er,r=abc",
        b"n,,n=user,r=abc,1=2",
        b"n,,n=user,r=abc,x=",
        b"n,,m=must,n=user,r=abc",
        b"y,,n=user,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"n,a=,n=user,r=abc",
        b"n,b=user,n=user,r=abc",
        b"n,,n=us\xffer,r=abc",
        b"n,,n=user,r=abc\n",
        b"n,,n=user,r=" + b"x" * MAX_BYTES,
    ],
)
def test_an_invalid_first_message(message):
    with pytest.raises(DecodeError):
        parse_client_first(message)
    with pytest.raises(AuthenticationError, match="invalid credentials"):
        server().step(message)


@given(st.binary(max_size=200))
def test_no_message_breaks_a_server(message):
    for ours in (server(), server()):
        try:
            ours.step(CLIENT_FIRST)
            ours.step(message)
        except AuthenticationError:
            pass
        assert not ours.complete


def test_the_parts_of_a_first_message():
    parsed = parse_client_first(b"n,a=x=2Cy,n=a=3Db,r=abc,tokenauth=TRUE,other=1=2")
    assert parsed.gs2_header == "n,a=x=2Cy,"
    assert parsed.bare == "n=a=3Db,r=abc,tokenauth=TRUE,other=1=2"
    assert (parsed.authorization_id, parsed.user, parsed.nonce, parsed.token_auth) == ("x,y", "a=b", "abc", True)
    assert not parse_client_first(b"n,,n=a,r=abc,tokenauth=false").token_auth
    assert not parse_client_first(b"n,,n=a,r=abc,xtokenauth=true").token_auth


def proved(first, challenge, final):
    """Return a final message with a valid proof for the password, whatever else it contains."""
    salted = scram_module.salted_password(SHA_256, "pencil", SALT, 4096)
    key = scram_module.client_key(SHA_256, salted)
    mask = scram_module.sign(SHA_256, scram_module.stored_key(SHA_256, key), b",".join((first, challenge, final)))
    return final + b",p=" + b64encode(bytes(a ^ b for a, b in zip(key, mask, strict=True)))


def test_the_sent_messages_are_signed():
    """Unknown extensions are signed with the rest (RFC 5802, section 5.1)."""
    first, ours = b"n=user,r=" + CLIENT_NONCE.encode() + b",b=2,a=1", server()
    challenge = ours.step(b"n,a=user," + first)
    ours.step(proved(first, challenge, b"c=" + b64encode(b"n,a=user,") + SIGNED[6:] + b",x=1"))
    assert ours.complete


@pytest.mark.parametrize(
    "final", [SIGNED.replace(b"biws", b"eSws"), SIGNED.replace(b"biws", b""), SIGNED + b"x", SIGNED[:-1], SIGNED[:30]]
)
def test_another_binding_or_nonce_is_rejected_despite_a_valid_proof(final):
    ours = server()
    challenge = ours.step(CLIENT_FIRST)
    with pytest.raises(AuthenticationError, match="invalid credentials"):
        ours.step(proved(CLIENT_FIRST[3:], challenge, final))
    assert not ours.complete


def test_another_authorization_id_is_rejected():
    for user in (b"user", b"nobody"):
        with pytest.raises(AuthenticationError, match="authorization id that is different from username"):
            server().step(b"n,a=other,n=" + user + b",r=abc")


def challenge_for(user, **options):
    return server(**options).step(f"n,,n={user},r=abc".encode()).decode()


def test_unknown_users_have_a_stable_salt():
    assert challenge_for("nobody") == challenge_for("nobody")
    assert challenge_for("nobody") != challenge_for("somebody")
    assert challenge_for("nobody", mechanism=SHA_512) != challenge_for("nobody")
    nonce, salt, iterations = challenge_for("nobody").split(",")
    assert nonce == f"r=abc{SERVER_NONCE}"
    assert 24 <= len(b64decode(salt[2:])) <= 26  # as kafka-configs makes them
    assert b64decode(salt[2:]).isalnum()
    assert iterations == "i=4096"


def test_an_unknown_user_cannot_log_in():
    """Not even with the fake's keys: its stored key has no known preimage to prove, and there is no principal."""
    ours = server()
    with pytest.raises(AuthenticationError, match="invalid credentials"):
        ours.step(exchange_until_proof(ours, "nobody"))


@pytest.mark.parametrize("broken", [{"iterations": 4095}, {"stored_key": b""}, {"server_key": b"x"}])
def test_an_invalid_credential_is_ignored(broken):
    ours = server(attrs.evolve(record(), **broken))
    with pytest.raises(AuthenticationError, match="invalid credentials"):
        ours.step(exchange_until_proof(ours))


@pytest.mark.parametrize(
    ("challenge", "what"),
    [
        (SERVER_FIRST.replace(b"rOpr", b"xOpr"), "nonce does not extend"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce does not extend"),
        (SERVER_FIRST.replace(b"4096", b"4095"), "4095 iterations"),
        (SERVER_FIRST.replace(b"4096", str(MAX_ITERATIONS + 1).encode()), "1048577 iterations"),
        (SERVER_FIRST.replace(b"4096", b"9" * 20), "invalid SCRAM-SHA-256 message"),
        (SERVER_FIRST.replace(b"==", b"="), "invalid SCRAM-SHA-256 message"),
        (b"", "invalid SCRAM-SHA-256 message"),
        (SERVER_FINAL, "invalid SCRAM-SHA-256 message"),
    ],
)
def test_challenges_that_a_client_rejects(challenge, what):
    their = client()
    their.first()
    with pytest.raises(AuthenticationError, match=what):
        their.step(challenge)
    assert not their.complete


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (b"e=other-error", "rejected the SCRAM-SHA-256 login: 'other-error'"),
        (SERVER_FINAL.replace(b"6rri", b"7rri"), "signature is wrong"),
        (b"v=", "signature is wrong"),
        (b"", "invalid SCRAM-SHA-256 message"),
    ],
)
def test_a_server_that_does_not_know_the_password(answer, what):
    their = client()
    their.first()
    their.step(SERVER_FIRST)
    with pytest.raises(AuthenticationError, match=what):
        their.step(answer)
    assert not their.complete


@pytest.mark.parametrize(
    ("text", "prepared"),
    [("I\u00adX", "IX"), ("user", "user"), ("USER", "USER"), ("\u00aa", "a"), ("\u2168", "IX"), ("a\u00a0b", "a b")],
)
def test_the_examples_of_rfc_4013(text, prepared):
    assert saslprep(text) == prepared


@pytest.mark.parametrize("text", ["\u0007", "\u06271", "\ue000", "\ud800", "\u0221", "a\u0627b\u0627", "\u200e"])
def test_what_rfc_4013_prohibits(text):
    with pytest.raises(DecodeError):
        saslprep(text)


def test_a_name_beyond_ascii_is_prepared_by_its_client():
    assert client_first("J\u0075\u0308rgen\u00aa", "abc") == "n=J\u00fcrgena,r=abc"
    assert parse_client_first("n,,n=J\u00fcrgen,r=abc".encode()).user == "J\u00fcrgen"
    with pytest.raises(DecodeError, match="prepared form"):
        parse_client_first("n,,n=Ju\u0308rgen,r=abc".encode())
