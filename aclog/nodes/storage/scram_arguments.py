"""`--add-scram`: a new cluster's first SCRAM credentials (org.apache.kafka.metadata.storage.ScramParser)."""

import binascii
from base64 import b64decode
from collections.abc import Callable

from aclog.credentials.scram import ScramMechanism
from aclog.credentials.scram_keys import (
    MIN_ITERATIONS,
    SALT_BYTES,
    client_key,
    kafka_salt,
    salted_password,
    server_key,
    stored_key,
)
from aclog.metalog.errors import ConfigError
from aclog.metalog.records import UserScramCredentialRecord

MAX_ITERATIONS = 16_384
"""ScramMechanism.maxIterations"""

_EXPECTED = "expected SCRAM-SHA-256=[name=...,password=...] (iterations, salt; or salt and saltedpassword)"
_KEYS = {"name", "password", "iterations", "salt", "saltedpassword"}


def parse_scram_argument(argument: str, token_bytes: Callable[[int], bytes]) -> UserScramCredentialRecord:
    """Parse `MECHANISM=[name=...,password=...,...]`; `token_bytes` generates the salt.

    Passwords cannot contain a comma, as in Kafka.

    Raises:
        ConfigError: malformed; the argument is not shown, since it contains a password.

    """
    name, _, rest = argument.strip().partition("=")
    mechanism = next((mechanism for mechanism in ScramMechanism if mechanism.mechanism_name == name), None)
    if mechanism is None:
        raise _malformed("it does not begin with SCRAM-SHA-256= or SCRAM-SHA-512=")
    if not (rest.startswith("[") and rest.endswith("]") and len(rest) > 1):
        raise _malformed("the part after the mechanism is not enclosed in [ and ]")
    values = _components(rest[1:-1])
    salt = _decoded(values, "salt") if "salt" in values else kafka_salt(token_bytes(SALT_BYTES))
    iterations = _iterations(values.get("iterations", str(MIN_ITERATIONS)))
    salted = _salted_password(mechanism, values, salt, iterations)
    return UserScramCredentialRecord(
        name=values["name"],
        mechanism=mechanism,
        salt=salt,
        stored_key=stored_key(mechanism, client_key(mechanism, salted)),
        server_key=server_key(mechanism, salted),
        iterations=iterations,
    )


def _components(text: str) -> dict[str, str]:
    values = {}
    for number, part in enumerate(text.split(","), 1):
        key, equals, value = part.partition("=")
        if not equals:
            raise _malformed(f"part {number} between [ and ] is not <key>=<value> (a password cannot contain a comma)")
        if key not in _KEYS:
            raise _malformed(f"part {number} between [ and ] has an unknown key")
        quoted = len(value) > 1 and value[0] == value[-1] == '"'
        values[key] = value[1:-1] if quoted else value
    if "name" not in values:
        raise _malformed("no name")
    return values


def _iterations(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not MIN_ITERATIONS <= int(text) <= MAX_ITERATIONS:
        raise ConfigError(f"--add-scram: iterations {text!r}: expected {MIN_ITERATIONS} to {MAX_ITERATIONS}")
    return int(text)


def _salted_password(mechanism: ScramMechanism, values: dict[str, str], salt: bytes, iterations: int) -> bytes:
    if "password" in values:
        return salted_password(mechanism, values["password"], salt, iterations)
    if "saltedpassword" not in values:
        raise _malformed("neither password nor saltedpassword")
    if "salt" not in values:
        raise _malformed("saltedpassword without salt")
    return _decoded(values, "saltedpassword")


def _decoded(values: dict[str, str], key: str) -> bytes:
    try:
        return b64decode(values[key] + "=" * (-len(values[key]) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise _malformed(f"{key} is not base64") from error


def _malformed(what: str) -> ConfigError:
    return ConfigError(f"--add-scram: {what}: {_EXPECTED}")
