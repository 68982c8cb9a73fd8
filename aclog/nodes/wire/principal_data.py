"""A principal as bytes, for an Envelope (DefaultKafkaPrincipalBuilder.serialize; DefaultPrincipalData version 0)."""

from aclog.authorizer.principals import KafkaPrincipal
from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import compact_string, read_compact_string
from aclog.nodes.wire.tagged_fields import tagged_fields


def encode_principal(principal: KafkaPrincipal, *, token_authenticated: bool = False) -> bytes:
    """The principal, and whether it logged in by a delegation token (its name is the token's owner then).

    Raises:
        EncodeError: a type or name beyond 32,767 bytes.

    """
    names = compact_string(principal.type) + compact_string(principal.name)
    return b"\0\0" + names + (b"\1" if token_authenticated else b"\0") + b"\0"


def decode_principal(data: bytes) -> tuple[KafkaPrincipal, bool]:
    """The principal, and whether it logged in by a delegation token.

    Raises:
        DecodeError: cut, not UTF-8, or not version 0. Kafka answers PRINCIPAL_DESERIALIZATION_FAILURE.

    """
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version != 0:
        raise DecodeError(f"principal data of version {version}: expected 0", position=0)
    kind, position = read_compact_string(data, 2)
    name, position = read_compact_string(data, position)
    if position >= len(data):
        raise DecodeError("cut before token_authenticated", position=position)
    tagged_fields(data, position + 1)
    return KafkaPrincipal(type=kind, name=name), data[position] != 0
