"""Detached signatures of files in the format of minisign: Ed25519 of a BLAKE2b hash, with a trusted comment.

Secret keys are files as `minisign -G`, or `minisign -G -W` without a passphrase, writes them; signatures are those of
`minisign -S`, which `minisign -V` verifies. Source: https://jedisct1.github.io/minisign/ (Signature format).
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable

from attrs import field
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen

_KEY, _PREHASHED, _SCRYPT, _PLAIN, _BLAKE2B = b"Ed", b"ED", b"Sc", b"\0\0", b"B2"
_SECRET_SIZE = 104
"""Of the id of a key, its seed, its public key, and their checksum."""
_SIZE = 54 + _SECRET_SIZE
_COMMENT = "untrusted comment: "
_MOST_MEMORY = 2 << 30
"""Bytes that the derivation of a key may take; minisign's own keys take 1 GiB."""
_MOST_OPERATIONS = 1 << 26
MOST_KEY_BYTES = 4096
"""Of the file of a key."""


@frozen(kw_only=True)
class SecretKey:
    """A key that signs: its id, and its seed, which no text shows."""

    key_id: bytes
    seed: bytes = field(repr=False)

    @property
    def public_text(self) -> str:
        """The public key, as `minisign -V -P` takes it."""
        public = self._private().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return b64encode(_KEY + self.key_id + public).decode()

    def signature(self, data: bytes, trusted_comment: str) -> str:
        """Return the text of the signature file of some data.

        Raises:
            ConfigError: a comment with a line end, which would be another line of the file.

        """
        if not trusted_comment.replace("\t", "").isprintable():
            raise ConfigError(f"the comment {trusted_comment[:80]!r} of a signature: expected printable text")
        private = self._private()
        signature = private.sign(hashlib.blake2b(data).digest())
        whole = private.sign(signature + trusted_comment.encode())
        lines = (
            f"{_COMMENT}signature from aclog",
            b64encode(_PREHASHED + self.key_id + signature).decode(),
            f"trusted comment: {trusted_comment}",
            b64encode(whole).decode(),
        )
        return "\n".join(lines) + "\n"

    def _private(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.seed)


def read_secret_key(content: bytes, name: str, passphrase: Callable[[], bytes]) -> SecretKey:
    """Return the key of a file; `passphrase` is called only for a key that is encrypted.

    Raises:
        ConfigError: not a secret key of minisign, or another passphrase; its text has the `name` of the file.

    """
    data = _decoded(content, name)
    algorithm, derivation, checksum = data[:2], data[2:4], data[4:6]
    if (algorithm, checksum) != (_KEY, _BLAKE2B) or derivation not in (_SCRYPT, _PLAIN):
        raise ConfigError(f"{name}: unknown algorithms of a key: expected one that minisign -G writes")
    secret = data[54:]
    if derivation == _SCRYPT:
        operations, memory = (int.from_bytes(data[at : at + 8], "little") for at in (38, 46))
        stream = _derived(passphrase, data[6:38], operations, memory, name)
        secret = bytes(one ^ other for one, other in zip(secret, stream, strict=True))
    key_id, seed, public, check = secret[:8], secret[8:40], secret[40:72], secret[72:]
    if not hmac.compare_digest(hashlib.blake2b(_KEY + secret[:72], digest_size=32).digest(), check):
        wrong = "wrong passphrase, or a damaged key" if derivation == _SCRYPT else "a damaged key: its checksum differs"
        raise ConfigError(f"{name}: {wrong}")
    own = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    if own != public:
        raise ConfigError(f"{name}: a damaged key: the public key is not that of the secret key")
    return SecretKey(key_id=key_id, seed=seed)


def _decoded(content: bytes, name: str) -> bytes:
    """Return the bytes of a key file's second line. Raises as read_secret_key."""
    expected = f"expected a secret key of minisign: a line '{_COMMENT}...' and one of base64"
    lines = content.splitlines()
    if len(content) > MOST_KEY_BYTES or len(lines) < 2 or not lines[0].startswith(_COMMENT.encode()):
        raise ConfigError(f"{name}: {expected}")
    try:
        data = b64decode(lines[1].strip(), validate=True)
    except (Base64Error, ValueError):
        raise ConfigError(f"{name}:2: {expected}") from None
    if len(data) == 42:
        raise ConfigError(f"{name}: is a public key: {expected}")
    if len(data) != _SIZE:
        raise ConfigError(f"{name}:2: {len(data)} bytes instead of {_SIZE}: {expected}")
    return data


def _derived(passphrase: Callable[[], bytes], salt: bytes, operations: int, memory: int, name: str) -> bytes:
    """Return the bytes that encrypt a key, as crypto_pwhash_scryptsalsa208sha256 of libsodium derives them."""
    if memory > _MOST_MEMORY or operations > _MOST_OPERATIONS:
        raise ConfigError(
            f"{name}: the derivation of the key takes {memory:,} bytes and {operations:,} operations: expected at most "
            f"{_MOST_MEMORY:,} and {_MOST_OPERATIONS:,}"
        )
    operations, blocks = max(operations, 32_768), 8
    if operations < memory // 32:
        rounds, parallel = _power(operations // (blocks * 4)), 1
    else:
        rounds = _power(memory // (blocks * 128))
        parallel = max(min(operations // 4 // rounds, 0x3FFFFFFF) // blocks, 1)
    limit = 128 * blocks * (rounds + parallel + 4)
    return hashlib.scrypt(passphrase(), salt=salt, n=rounds, r=blocks, p=parallel, maxmem=limit, dklen=_SECRET_SIZE)


def _power(most: int) -> int:
    """Return the first power of two from 2 on of which two are more than so many."""
    power = 2
    while power <= most // 2:
        power *= 2
    return power
