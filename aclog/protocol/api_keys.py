"""API keys, and the first flexible version of each API (ApiKeys, ApiMessageType; KIP-482)."""

from aclog.metalog.errors import DecodeError

FETCH = 1
METADATA = 3
LIST_GROUPS = 16
SASL_HANDSHAKE = 17
API_VERSIONS = 18
DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS = 29, 30, 31
DESCRIBE_CONFIGS = 32
SASL_AUTHENTICATE = 36
CREATE_DELEGATION_TOKEN, RENEW_DELEGATION_TOKEN = 38, 39
EXPIRE_DELEGATION_TOKEN, DESCRIBE_DELEGATION_TOKEN = 40, 41
DESCRIBE_CLIENT_QUOTAS, ALTER_CLIENT_QUOTAS = 48, 49
DESCRIBE_USER_SCRAM_CREDENTIALS, ALTER_USER_SCRAM_CREDENTIALS = 50, 51
DESCRIBE_QUORUM = 55
ENVELOPE = 58
FETCH_SNAPSHOT = 59
DESCRIBE_CLUSTER = 60
BROKER_REGISTRATION, BROKER_HEARTBEAT, UNREGISTER_BROKER = 62, 63, 64
UNREGISTER_CONTROLLER = 94

# fmt: off
FIRST_FLEXIBLE: dict[int, int | None] = {
    0: 9, 1: 12, 2: 6, 3: 9, 8: 8, 9: 6, 10: 3, 11: 6, 12: 4, 13: 4, 14: 4, 15: 5, 16: 3, 17: None, 18: 3, 19: 5,
    20: 4, 21: 2, 22: 2, 23: 4, 24: 3, 25: 3, 26: 3, 27: 1, 28: 3, 29: 2, 30: 2, 31: 2, 32: 4, 33: 2, 34: 2, 35: 2,
    36: 2, 37: 2, 38: 2, 39: 2, 40: 2, 41: 2, 42: 2, 43: 2, 44: 1, 45: 0, 46: 0, 47: None, 48: 1, 49: 1, 50: 0, 51: 0,
    52: 0, 53: 1, 54: 1, 55: 0, 56: 0, 57: 0, 58: 0, 59: 0, 60: 0, 61: 0, 62: 0, 63: 0, 64: 0, 65: 0, 66: 0, 67: 0,
    68: 0, 69: 0, 70: 0, 71: 0, 72: 0, 73: 0, 74: 0, 75: 0, 76: 0, 77: 0, 78: 0, 79: 0, 80: 0, 81: 0, 82: 0, 83: 0,
    84: 0, 85: 0, 86: 0, 87: 0, 88: 0, 89: 0, 90: 0, 91: 0, 92: 0, 93: 0, 94: 0,
}
# fmt: on
"""The first flexible version of every API of Kafka 4.4.0; None if no version is flexible."""


def is_flexible(api_key: int, api_version: int) -> bool:
    """Return whether the version is flexible; unknown newer versions are like the newest known one.

    Raises:
        DecodeError: An unknown API key (ApiKeys.forId throws).

    """
    try:
        first = FIRST_FLEXIBLE[api_key]
    except KeyError:
        raise DecodeError(f"unknown API key {api_key}") from None
    return first is not None and api_version >= first
