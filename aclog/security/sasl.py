"""SASL of servers and clients.

PLAIN (RFC 4616) and SCRAM (RFC 5802, RFC 7677), and the credentials that verify logins.
"""

import binascii
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Protocol

from attrs import field

from aclog.authorizer.settings import KafkaPrincipal
from aclog.config.node_config import ClientSecurity, Listener
from aclog.credentials import scram
from aclog.credentials.scram import ScramMechanism, credential_record, kafka_salt
from aclog.credentials.tokens import token_hmac
from aclog.metalog.control_records import KRaftVoters
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.records import UserScramCredentialRecord
from aclog.metalog.values import define, frozen
from aclog.security.principals import (
    AuthenticationError,
    AuthenticationNotReadyError,
    Credentials,
    TokenCredential,
    invalid_credentials,
    saslprep,
)
from aclog.snapshots.publisher import Publisher

# Server side of SASL PLAIN (RFC 4616; PlainSaslServer).


_TOKENS = 3
"""The number of tokens in the message; Kafka splits off at most one more, which its error text counts."""


@define(kw_only=True)
class PlainServer:
    """One PLAIN login on one connection: one message, an empty response."""

    users: Mapping[str, str] = field(repr=False)
    """Passwords by user, from the `user_<name>` entries of the listener's sasl.jaas.config."""
    reauthentication: bool = False
    mechanism: str = field(default="PLAIN", init=False)
    token_authenticated: bool = field(default=False, init=False)
    expiry_ms: int | None = field(default=None, init=False)
    complete: bool = field(default=False, init=False)
    _principal: KafkaPrincipal | None = field(default=None, init=False)

    @property
    def principal(self) -> KafkaPrincipal:
        """The authenticated user; only once `complete`."""
        if self._principal is None:
            raise AuthenticationError("the login is not complete")
        return self._principal

    def step(self, message: bytes) -> bytes:
        """Verify `[authorization id] NUL user NUL password`.

        Raises:
            AuthenticationError: Wrong password, unknown user, or malformed message.

        """
        authorization_id, user, password = self._parsed(message)
        for what, text in (("username", user), ("password", password)):
            if not text:
                raise AuthenticationError(f"Authentication failed: {what} not specified")
        if not _equal(password, self.users.get(user)):
            raise AuthenticationError("Authentication failed: Invalid username or password")
        if authorization_id not in ("", user):
            raise other_authorization_id()
        self._principal = KafkaPrincipal(type="User", name=user)
        self.complete = True
        return b""

    def _parsed(self, message: bytes) -> tuple[str, str, str]:
        if self.complete:
            raise invalid_credentials(self.mechanism, reauthentication=self.reauthentication)
        parts = message.decode(errors="replace").split("\0", _TOKENS)
        if len(parts) != _TOKENS:
            raise AuthenticationError(f"Invalid SASL/PLAIN response: expected {_TOKENS} tokens, got {len(parts)}")
        return parts[0], parts[1], parts[2]


def other_authorization_id() -> AuthenticationError:
    """Return the error for an authorization id other than the user (the text is Kafka's)."""
    return AuthenticationError(
        "Authentication failed: Client requested an authorization id that is different from username"
    )


def _equal(password: str, expected: str | None) -> bool:
    """Compare in constant time, for any lengths and whether or not the user exists."""
    digests = (sha256(text.encode("utf-8", "surrogatepass")).digest() for text in (password, expected or ""))
    return hmac.compare_digest(*digests) and expected is not None


# The four messages of a SCRAM exchange (RFC 5802, section 7; ScramMessages).


MAX_BYTES = 1 << 13
"""Longer messages are rejected without parsing."""

_NAME = r"(?:[^\x00=,]|=2C|=3D)+"
_VALUE = r"[^\x00,]+"
_NONCE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"[A-Za-z0-9+/]*={0,2}"
_EXTENSIONS = rf"(?P<extensions>(?:,[A-Za-z]+={_VALUE})*)"
_CLIENT_FIRST = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<authzid>{_NAME}))?,)(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE}){_EXTENSIONS})"
)
_SERVER_FIRST = re.compile(rf"r=(?P<nonce>{_NONCE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}}){_EXTENSIONS}")
_CLIENT_FINAL = re.compile(
    rf"(?P<signed>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL = re.compile(rf"(?:e=(?P<error>{_VALUE})|v=(?P<signature>{_BASE64})){_EXTENSIONS}")


@frozen(kw_only=True)
class ClientFirst:
    """The client's first message. `bare` is the signed part after `gs2_header`; names are unescaped."""

    gs2_header: str
    bare: str
    user: str
    nonce: str
    authorization_id: str
    token_auth: bool


@frozen(kw_only=True)
class ServerFirst:
    """The server's first message. `nonce` is the client's nonce followed by the server's."""

    nonce: str
    salt: bytes = field(repr=False)
    iterations: int

    @property
    def text(self) -> str:
        """The message as sent."""
        return f"r={self.nonce},s={_base64(self.salt)},i={self.iterations}"


@frozen(kw_only=True)
class ClientFinal:
    """The client's final message. `signed` is the message without the proof, `binding` its copy of the GS2 header."""

    signed: str
    nonce: str
    binding: bytes
    proof: bytes = field(repr=False)


def parse_client_first(message: bytes) -> ClientFirst:
    """Parse a client's first message; extensions other than `tokenauth` are ignored.

    Raises:
        DecodeError: A malformed message, or a non-ASCII name that is not in its prepared form (saslprep).

    """
    match = _matched(_CLIENT_FIRST, message, "a client's first message")
    extensions = [pair.partition("=") for pair in match["extensions"].split(",") if pair]
    token_auth = any(name == "tokenauth" and value.lower() == "true" for name, _, value in extensions)
    return ClientFirst(
        gs2_header=match["gs2"],
        bare=match["bare"],
        user=_unescaped(match["name"]),
        nonce=match["nonce"],
        authorization_id=_unescaped(match["authzid"] or ""),
        token_auth=token_auth,
    )


def client_first(user: str, nonce: str, *, token_auth: bool = False) -> str:
    """Return the bare first message, which follows the GS2 header `n,,`."""
    name = _prepared(user).replace("=", "=3D").replace(",", "=2C")
    return f"n={name},r={nonce}" + (",tokenauth=true" if token_auth else "")


def parse_server_first(message: bytes) -> ServerFirst:
    """Parse a server's first message; raise DecodeError for anything else."""
    match = _matched(_SERVER_FIRST, message, "a server's first message")
    return ServerFirst(nonce=match["nonce"], salt=_bytes(match["salt"]), iterations=int(match["iterations"]))


def parse_client_final(message: bytes) -> ClientFinal:
    """Parse a client's final message; raise DecodeError for anything else."""
    match = _matched(_CLIENT_FINAL, message, "a client's final message")
    return ClientFinal(
        signed=match["signed"],
        nonce=match["nonce"],
        binding=_bytes(match["binding"]),
        proof=_bytes(match["proof"]),
    )


def client_final(gs2_header: str, nonce: str) -> str:
    """Return the client's final message without the proof."""
    return f"c={_base64(gs2_header.encode())},r={nonce}"


def with_proof(signed: str, proof: bytes) -> bytes:
    """Return the complete client's final message."""
    return f"{signed},p={_base64(proof)}".encode()


def parse_server_final(message: bytes) -> bytes | str:
    """Return the server's signature as bytes, or its error as text; raise DecodeError for anything else."""
    match = _matched(_SERVER_FINAL, message, "a server's final message")
    error = match["error"]
    return error if error is not None else _bytes(match["signature"])


def server_final(signature: bytes) -> bytes:
    """Return the server's final message."""
    return f"v={_base64(signature)}".encode()


def _matched(pattern: re.Pattern[str], message: bytes, what: str) -> re.Match[str]:
    """Match a whole message. Errors do not quote it: it is untrusted, or contains a proof."""
    if len(message) > MAX_BYTES:
        raise DecodeError(f"{len(message)} bytes, expected {what} of at most {MAX_BYTES}")
    try:
        match = pattern.fullmatch(message.decode())
    except UnicodeDecodeError as error:
        raise DecodeError("not UTF-8", position=error.start) from error
    if match is None:
        raise DecodeError(f"{len(message)} bytes, expected {what} of SCRAM (RFC 5802, section 7)")
    return match


def _unescaped(name: str) -> str:
    text = name.replace("=2C", ",").replace("=3D", "=")
    if _prepared(text) != text:
        raise DecodeError("user name is not in its prepared form (RFC 4013)")
    return text


def _prepared(name: str) -> str:
    """Prepare a name. ASCII is left as it is, as in Kafka; Kafka does not support other names, so the RFC applies."""
    return name if name.isascii() else saslprep(name)


def _base64(value: bytes) -> str:
    return b64encode(value).decode("ascii")


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except binascii.Error as error:
        raise DecodeError("not base64") from error


# The key from which nodes derive the salts that they return for unknown users.
#
# All nodes of a cluster must return the same salt for a user, otherwise a client that compares two salts can infer that
# the user is unknown. So the key is derived from data of all nodes: the directory ids of the quorum's voters, which are
# random and which DescribeQuorum returns only to clients that may list the users anyway, and the cluster id. No
# password, SCRAM key or other secret that a person may have chosen is in the key: salts are sent to every client, so
# that it could be guessed offline.
#
# Where the log names no voters (a static quorum, or a log on a topic) only the cluster id is left, which every client
# with a login can get: `aclog.scram.decoy.secret` then makes up for it.


def decoy_key(cluster_id: str, voters: KRaftVoters | None, secret: str | None) -> bytes:
    """Return 64 bytes that are the same for the same arguments; with a secret, the voters are not read."""
    ids = [] if voters is None or secret else sorted(each.voter_directory_id.bytes for each in voters.voters)
    common = b"\0".join((b"SCRAM decoys", cluster_id.encode(), b"".join(ids)))
    return hmac.digest((secret or "").encode(), common, "sha512")


def decoy_salt(key: bytes, mechanism: ScramMechanism, user: str) -> bytes:
    """Return the salt of an unknown user, in the format of Kafka's tools; delegation tokens have it anyway."""
    return kafka_salt(hmac.digest(key, f"{mechanism.mechanism_name}\0{user}".encode(), "sha512"))


# The SCRAM credentials and delegation tokens of the published image.


_REMEMBERED = 10_000
"""Size of the cache of token credentials, which take 1 ms and about 500 bytes each."""


@define(eq=False, kw_only=True)
class PublishedCredentials(Credentials):
    """Reads credentials from the published image (ScramPublisher's CredentialProvider, DelegationTokenPublisher)."""

    publisher: Publisher
    replayed: Callable[[], bool]
    """Whether the image covers everything that was committed when this node started."""
    cluster_id: str
    token_secret: str | None = field(default=None, repr=False)
    """delegation.token.secret.key; without it token logins are disabled."""
    decoy_secret: str | None = field(default=None, repr=False)
    """aclog.scram.decoy.secret."""
    tokens_enabled: bool = field(init=False)
    clock: Callable[[], int] = current_time_ms
    """Returns ms since 1970."""
    _token_credentials: OrderedDict[tuple[str, ScramMechanism], UserScramCredentialRecord] = field(
        factory=OrderedDict, init=False, repr=False
    )

    @tokens_enabled.default
    def _has_secret(self) -> bool:
        return bool(self.token_secret)

    @property
    def ready(self) -> bool:
        """See `replayed`."""
        return self.replayed()

    @property
    def decoy_key(self) -> bytes:
        """See Credentials."""
        return decoy_key(self.cluster_id, self.publisher.current.provenance.voters, self.decoy_secret)

    def scram(self, user: str, mechanism: ScramMechanism) -> UserScramCredentialRecord | None:
        """The user's credential, or None."""
        return self.publisher.current.scram.get(user, mechanism)

    def token(self, token_id: str, mechanism: ScramMechanism) -> TokenCredential | None:
        """The token with this id unless it has expired.

        Kafka accepts the login with an expired token and closes the session at its first request.
        """
        token = self.publisher.current.tokens.get(token_id)
        if token is None or self.token_secret is None:
            return None
        expiry = min(token.expiration_timestamp, token.max_timestamp)
        if expiry <= self.clock():
            return None
        credential = self._credential(self.token_secret, token_id, mechanism)
        kind, _, name = token.owner.partition(":")
        return TokenCredential(owner=KafkaPrincipal(type=kind, name=name), expiry_ms=expiry, credential=credential)

    def _credential(self, secret: str, token_id: str, mechanism: ScramMechanism) -> UserScramCredentialRecord:
        """Return the SCRAM credential for the token's HMAC.

        The minimum of iterations suffices, as in Kafka: unlike a password, an HMAC cannot be guessed.
        """
        cache, key = self._token_credentials, (token_id, mechanism)
        if (cached := cache.get(key)) is not None:
            cache.move_to_end(key)
            return cached
        # The salt does not reveal whether the token exists.
        salt, iterations = decoy_salt(self.decoy_key, mechanism, token_id), scram.MIN_ITERATIONS
        salted = scram.salted_password(mechanism, token_hmac(secret, token_id), salt, iterations)
        credential = credential_record(token_id, mechanism, salt=salt, salted_password=salted, iterations=iterations)
        cache[key] = credential
        if len(cache) > _REMEMBERED:
            cache.popitem(last=False)
        return credential


# Server side of SASL SCRAM (RFC 5802, RFC 7677; ScramSaslServer).
#
# An unknown user gets the same exchange and the same failure as a wrong password, with a salt that stays the same, on
# every node of the cluster (security.sasl), so that user names cannot be probed. (In Kafka an unknown user
# fails one message earlier.)


def new_nonce() -> str:
    """Return 32 random characters that are valid in a message."""
    return secrets.token_urlsafe(24)


@frozen(kw_only=True)
class _Exchange:
    """The state between the two messages of the client."""

    client_first: ClientFirst
    server_first: ServerFirst
    credential: UserScramCredentialRecord
    principal: KafkaPrincipal | None
    """None for an unknown user: the login fails with any proof."""
    expiry_ms: int | None = None


@define(kw_only=True)
class ScramServer:
    """One SCRAM login on one connection: two messages, two responses."""

    scram_mechanism: ScramMechanism
    credentials: Credentials = field(repr=False)
    reauthentication: bool = False
    nonce: Callable[[], str] = field(default=new_nonce, repr=False)
    complete: bool = field(default=False, init=False)
    _exchange: _Exchange | None = field(default=None, init=False, repr=False)
    _failed: bool = field(default=False, init=False)

    @property
    def mechanism(self) -> str:
        """The SASL mechanism name, such as `SCRAM-SHA-256`."""
        return self.scram_mechanism.mechanism_name

    @property
    def principal(self) -> KafkaPrincipal:
        """The user, or the token's owner; only once `complete`."""
        if not self.complete or self._exchange is None or self._exchange.principal is None:
            raise AuthenticationError("the login is not complete")
        return self._exchange.principal

    @property
    def token_authenticated(self) -> bool:
        """Whether the client authenticated with a delegation token."""
        return self.complete and self._exchange is not None and self._exchange.client_first.token_auth

    @property
    def expiry_ms(self) -> int | None:
        """The token's expiry in ms since 1970; None for a user."""
        return self._exchange.expiry_ms if self._exchange is not None else None

    def step(self, message: bytes) -> bytes:
        """Process the client's next message; return the server's.

        Raises:
            AuthenticationError: The login failed; unknown user, wrong password and malformed message have one text.
            AuthenticationNotReadyError: The credentials are not replayed yet.

        """
        if self.complete or self._failed:
            raise self._invalid()
        try:
            return self._challenge(message) if self._exchange is None else self._verify(self._exchange, message)
        except DecodeError as error:
            self._failed = True
            raise self._invalid() from error
        except (AuthenticationError, AuthenticationNotReadyError):
            self._failed = True
            raise

    def _challenge(self, message: bytes) -> bytes:
        client = parse_client_first(message)
        # Token ids and user names are separate namespaces; `tokenauth=true` selects which one (KIP-48).
        if client.token_auth and not self.credentials.tokens_enabled:
            raise AuthenticationError("Authentication failed: delegation tokens are not enabled")
        if client.authorization_id not in ("", client.user):
            raise other_authorization_id()
        if not self.credentials.ready:
            raise AuthenticationNotReadyError(
                "this node has not replayed its credentials yet: retry the SCRAM login later"
            )
        principal, credential, expiry_ms = self._credential(client)
        server = ServerFirst(nonce=client.nonce + self.nonce(), salt=credential.salt, iterations=credential.iterations)
        self._exchange = _Exchange(
            client_first=client, server_first=server, credential=credential, principal=principal, expiry_ms=expiry_ms
        )
        return server.text.encode()

    def _credential(self, client: ClientFirst) -> tuple[KafkaPrincipal | None, UserScramCredentialRecord, int | None]:
        """Return the claimed principal, its credential and expiry; for an unknown user None and a fake credential."""
        fake = self._fake(client.user)  # computed for every user, so that timing does not reveal unknown ones
        if client.token_auth:
            token = self.credentials.token(client.user, self.scram_mechanism)
            if token is not None and self._usable(token.credential):
                return token.owner, token.credential, token.expiry_ms
        else:
            credential = self.credentials.scram(client.user, self.scram_mechanism)
            if credential is not None and self._usable(credential):
                return KafkaPrincipal(type="User", name=client.user), credential, None
        return None, fake, None

    def _usable(self, credential: UserScramCredentialRecord) -> bool:
        size = scram.key_size(self.scram_mechanism)
        sizes = {len(credential.stored_key), len(credential.server_key)}
        return credential.iterations >= scram.MIN_ITERATIONS and sizes == {size}

    def _fake(self, user: str) -> UserScramCredentialRecord:
        """Return a credential without a password, stable per user."""
        salt = decoy_salt(self.credentials.decoy_key, self.scram_mechanism, user)
        key = bytes(scram.key_size(self.scram_mechanism))
        return UserScramCredentialRecord(
            name=user,
            mechanism=self.scram_mechanism,
            salt=salt,
            stored_key=key,
            server_key=key,
            iterations=scram.MIN_ITERATIONS,
        )

    def _verify(self, exchange: _Exchange, message: bytes) -> bytes:
        final = parse_client_final(message)
        bound = final.binding == exchange.client_first.gs2_header.encode()
        same_nonce = final.nonce == exchange.server_first.nonce
        signed = f"{exchange.client_first.bare},{exchange.server_first.text},{final.signed}".encode()
        # All checks are made before any result is used: which one failed must not show in the response time.
        proved = self._proved(exchange.credential, signed, final)
        signature = scram.sign(self.scram_mechanism, exchange.credential.server_key, signed)
        if not (proved and bound and same_nonce and exchange.principal is not None):
            raise self._invalid()
        self.complete = True
        return server_final(signature)

    def _proved(self, credential: UserScramCredentialRecord, signed: bytes, final: ClientFinal) -> bool:
        """Whether the proof reveals the client key, which it masks with a signature by the stored key."""
        signature = scram.sign(self.scram_mechanism, credential.stored_key, signed)
        if len(final.proof) != len(signature):
            return False
        client_key = bytes(p ^ s for p, s in zip(final.proof, signature, strict=True))
        return hmac.compare_digest(scram.stored_key(self.scram_mechanism, client_key), credential.stored_key)

    def _invalid(self) -> AuthenticationError:
        return invalid_credentials(self.mechanism, reauthentication=self.reauthentication)


# Server side of SASL, independent of the mechanism (javax.security.sasl.SaslServer).


__all__ = [
    "MECHANISMS",
    "AuthenticationError",
    "AuthenticationNotReadyError",
    "Credentials",
    "SaslServer",
    "TokenCredential",
    "sasl_server",
]

_SCRAM = {mechanism.mechanism_name: mechanism for mechanism in ScramMechanism}
MECHANISMS = ("PLAIN", *_SCRAM)
"""The names of the supported mechanisms."""


class SaslServer(Protocol):
    """One login on one connection."""

    complete: bool
    """Whether the client is authenticated; no further step is allowed then."""

    @property
    def mechanism(self) -> str:
        """The SASL mechanism name."""
        ...

    @property
    def principal(self) -> KafkaPrincipal:
        """The authenticated principal; only once `complete`."""
        ...

    @property
    def token_authenticated(self) -> bool:
        """Whether the client authenticated with a delegation token; only once `complete`."""
        ...

    @property
    def expiry_ms(self) -> int | None:
        """The token's expiry in ms since 1970; None for a login without a token."""
        ...

    def step(self, message: bytes) -> bytes:
        """Process the client's next message; return the challenge, which may be empty.

        Raises:
            AuthenticationError: The login failed; the text is sent to the client with code 58.
            AuthenticationNotReadyError: The credentials are not replayed yet; the client should retry.

        """
        ...


def sasl_server(
    mechanism: str, *, listener: Listener, credentials: Credentials, reauthentication: bool = False
) -> SaslServer:
    """Return a new login with this mechanism on this listener.

    Raises:
        AuthenticationError: The listener does not offer the mechanism (SaslHandshake answers this with code 33).

    """
    if mechanism not in listener.sasl_mechanisms or mechanism not in MECHANISMS:
        offered = ", ".join(listener.sasl_mechanisms)
        raise AuthenticationError(f"listener {listener.name} does not offer this SASL mechanism, only: {offered}")
    if mechanism == "PLAIN":
        return PlainServer(users=listener.plain_users, reauthentication=reauthentication)
    return ScramServer(scram_mechanism=_SCRAM[mechanism], credentials=credentials, reauthentication=reauthentication)


# Client side of SASL PLAIN (RFC 4616) and SCRAM (RFC 5802, RFC 7677; ScramSaslClient).


MAX_ITERATIONS = 1 << 20
"""The most iterations a server may demand, against denial of service. Kafka's controllers store at most 16,384."""

_GS2_HEADER = "n,,"


class SaslClient(Protocol):
    """One login to a server: `first`, then `step` with each challenge until `complete`."""

    complete: bool
    """Whether the exchange is complete; with SCRAM, after the server's signature has been verified."""

    @property
    def mechanism(self) -> str:
        """The mechanism name for SaslHandshake."""
        ...

    def first(self) -> bytes:
        """Return the initial message."""
        ...

    def step(self, challenge: bytes) -> bytes | None:
        """Process the server's challenge; return the next message, None at the end of the exchange.

        Raises:
            AuthenticationError: The message is malformed, or the server does not prove knowledge of the password.

        """
        ...


@define(kw_only=True)
class PlainClient:
    """Client side of PLAIN."""

    username: str
    password: str = field(repr=False)
    mechanism: str = field(default="PLAIN", init=False)
    complete: bool = field(default=False, init=False)

    def first(self) -> bytes:
        """Return user and password, without an authorization id."""
        return f"\0{self.username}\0{self.password}".encode()

    def step(self, challenge: bytes) -> bytes | None:  # noqa: ARG002 - the server's message is empty
        """Complete the exchange."""
        self.complete = True
        return None


@define(kw_only=True)
class ScramClient:
    """Client side of SCRAM, with mutual authentication."""

    scram_mechanism: ScramMechanism
    username: str
    password: str = field(repr=False)
    token_auth: bool = False
    nonce: Callable[[], str] = field(default=new_nonce, repr=False)
    complete: bool = field(default=False, init=False)
    _nonce: str = field(default="", init=False, repr=False)
    _signature: bytes | None = field(default=None, init=False, repr=False)
    """The expected server signature; None before the server's first message."""

    @property
    def mechanism(self) -> str:
        """The SASL mechanism name, such as `SCRAM-SHA-256`."""
        return self.scram_mechanism.mechanism_name

    def first(self) -> bytes:
        """Return the user and a new nonce."""
        self._nonce, self._signature, self.complete = self.nonce(), None, False
        return (_GS2_HEADER + self._bare()).encode()

    def step(self, challenge: bytes) -> bytes | None:
        """Return the proof, then None; raises as SaslClient.step."""
        try:
            if self._signature is None:
                return self._proof(parse_server_first(challenge), challenge.decode())
            self._check(parse_server_final(challenge), self._signature)
        except DecodeError as error:
            raise AuthenticationError(f"invalid {self.mechanism} message from the server: {error}") from error
        return None

    def _bare(self) -> str:
        return client_first(self.username, self._nonce, token_auth=self.token_auth)

    def _proof(self, server: ServerFirst, text: str) -> bytes:
        mechanism = self.scram_mechanism
        # The server must extend our nonce (RFC 5802, section 5.1); a replayed message would not.
        if not server.nonce.startswith(self._nonce) or server.nonce == self._nonce:
            raise AuthenticationError(f"the server's {self.mechanism} nonce does not extend the client's")
        if not scram.MIN_ITERATIONS <= server.iterations <= MAX_ITERATIONS:
            raise AuthenticationError(
                f"the server demands {server.iterations} iterations of {self.mechanism}, "
                f"expected {scram.MIN_ITERATIONS} to {MAX_ITERATIONS}"
            )
        salted = scram.salted_password(mechanism, self.password, server.salt, server.iterations)
        final = client_final(_GS2_HEADER, server.nonce)
        signed = f"{self._bare()},{text},{final}".encode()
        key = scram.client_key(mechanism, salted)
        signature = scram.sign(mechanism, scram.stored_key(mechanism, key), signed)
        self._signature = scram.sign(mechanism, scram.server_key(mechanism, salted), signed)
        return with_proof(final, bytes(k ^ s for k, s in zip(key, signature, strict=True)))

    def _check(self, final: bytes | str, signature: bytes) -> None:
        if isinstance(final, str):
            raise AuthenticationError(f"the server rejected the {self.mechanism} login: {final[:200]!r}")
        if not hmac.compare_digest(final, signature):
            raise AuthenticationError(
                f"the server does not prove the password: its {self.mechanism} signature is wrong"
            )
        self.complete = True


def sasl_client(security: ClientSecurity) -> SaslClient:
    """Return a new login as configured.

    Raises:
        ConfigError: Unknown mechanism, or no username and password.

    """
    mechanism, user, password = security.sasl_mechanism, security.username, security.password
    if user is None or password is None:
        raise ConfigError("sasl.jaas.config: expected a username and a password")
    if mechanism == "PLAIN":
        return PlainClient(username=user, password=password)
    for each in ScramMechanism:
        if each.mechanism_name == mechanism:
            return ScramClient(scram_mechanism=each, username=user, password=password, token_auth=security.token_auth)
    raise ConfigError(f"sasl.mechanism: {mechanism}: expected PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
