"""The keys of a SCRAM credential, and signatures with them (RFC 5802, section 3; Kafka's ScramFormatter).

A password is used as is, in UTF-8: Kafka's tools and clients do not apply SASLprep, so a prepared password would not
match what they stored. Every function takes the mechanism first, which determines the hash.
"""

import hashlib
import hmac

from aclog.credentials.scram import ScramMechanism

MIN_ITERATIONS = 4096
"""Lower bound on iterations (ScramMechanism.minIterations, RFC 5802 and RFC 7677)."""

_HASHES = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}

SALT_BYTES = 17
"""How many random bytes `kafka_salt` needs at least."""

_SALT_BITS, _DIGITS = 130, "0123456789abcdefghijklmnopqrstuvwxyz"


def kafka_salt(random: bytes) -> bytes:
    """Return a salt as Kafka's tools and clients make them: a number of 130 bits, in base 36, as text.

    A salt that looked otherwise would tell real users from those who do not exist.
    """
    number, digits = int.from_bytes(random) >> (8 * len(random) - _SALT_BITS), ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return (digits or "0").encode("ascii")


def key_size(mechanism: ScramMechanism) -> int:
    """Return the size in bytes of every key, signature and proof."""
    return hashlib.new(_HASHES[mechanism]).digest_size


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the value from which keys derive (Hi in the RFC): deliberately slow, about 1 ms for 4,096 iterations."""
    # Hi() of RFC 5802 is PBKDF2 with HMAC and one output block.
    return hashlib.pbkdf2_hmac(_HASHES[mechanism], password.encode(), salt, iterations)


def client_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """Return the key that a client proves to possess."""
    return sign(mechanism, salted, b"Client Key")


def stored_key(mechanism: ScramMechanism, client: bytes) -> bytes:
    """Return the hash of the client key: enough to verify a proof, not enough to create one."""
    return hashlib.new(_HASHES[mechanism], client).digest()


def server_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """Return the key that a server proves to possess."""
    return sign(mechanism, salted, b"Server Key")


def sign(mechanism: ScramMechanism, key: bytes, message: bytes) -> bytes:
    """Return the HMAC of a message."""
    return hmac.new(key, message, _HASHES[mechanism]).digest()
