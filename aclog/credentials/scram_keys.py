"""The keys of a SCRAM credential, and what is signed with them (RFC 5802, section 3; Kafka's ScramFormatter).

A password goes in as it is, in UTF-8: Kafka's tools and clients do not prepare it, so a prepared one would not match
what they stored. Every function takes the mechanism first, for its hash.
"""

import hashlib
import hmac

from aclog.credentials.scram import ScramMechanism

MIN_ITERATIONS = 4096
"""Fewer are refused by everyone (ScramMechanism.minIterations, RFC 5802 and RFC 7677)."""

_HASHES = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}


def key_size(mechanism: ScramMechanism) -> int:
    """How many bytes each key, signature and proof has."""
    return hashlib.new(_HASHES[mechanism]).digest_size


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """What the keys derive from: slow on purpose, about a millisecond in 4,096 iterations (Hi in the RFC)."""
    return hashlib.pbkdf2_hmac(_HASHES[mechanism], password.encode(), salt, iterations)


def client_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """What a client proves to know."""
    return sign(mechanism, salted, b"Client Key")


def stored_key(mechanism: ScramMechanism, client: bytes) -> bytes:
    """The hash of the client key: enough to check a proof, not enough to make one."""
    return hashlib.new(_HASHES[mechanism], client).digest()


def server_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """What a server proves to know."""
    return sign(mechanism, salted, b"Server Key")


def sign(mechanism: ScramMechanism, key: bytes, message: bytes) -> bytes:
    """The HMAC of a message under a key."""
    return hmac.new(key, message, _HASHES[mechanism]).digest()
