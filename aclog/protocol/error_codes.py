"""The error codes that nodes send and interpret (org.apache.kafka.common.protocol.Errors)."""

from enum import IntEnum
from typing import TypeAlias

from kio.schema.errors import ErrorCode

# The error codes that nodes send and interpret (org.apache.kafka.common.protocol.Errors).


UNKNOWN_SERVER_ERROR = -1
UNKNOWN_TOPIC_OR_PARTITION = 3
NOT_LEADER_OR_FOLLOWER = 6
REQUEST_TIMED_OUT = 7
BROKER_NOT_AVAILABLE = 8
NETWORK_EXCEPTION = 13
RECORD_LIST_TOO_LARGE = 18
CLUSTER_AUTHORIZATION_FAILED = 31
UNSUPPORTED_SASL_MECHANISM = 33
ILLEGAL_SASL_STATE = 34
UNSUPPORTED_VERSION = 35
NOT_CONTROLLER = 41
INVALID_REQUEST = 42
SECURITY_DISABLED = 54
SASL_AUTHENTICATION_FAILED = 58
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
STALE_BROKER_EPOCH = 77
PRINCIPAL_DESERIALIZATION_FAILURE = 97
SNAPSHOT_NOT_FOUND = 98
POSITION_OUT_OF_RANGE = 99
DUPLICATE_BROKER_REGISTRATION = 101
BROKER_ID_NOT_REGISTERED = 102
INCONSISTENT_CLUSTER_ID = 104
INVALID_REGISTRATION = 119
REBOOTSTRAP_REQUIRED = 129
CONTROLLER_ID_NOT_REGISTERED = 136


class NewerErrorCode(IntEnum):
    """The errors of Kafka 4.4 that kio does not have yet, named as in its enum."""

    group_deletion_failed = 134
    streams_topology_description_update_failed = 135
    controller_id_not_registered = CONTROLLER_ID_NOT_REGISTERED


KnownErrorCode: TypeAlias = ErrorCode | NewerErrorCode


def error_code(code: int) -> KnownErrorCode:
    """Return the error of a code; UNKNOWN_SERVER_ERROR for an unknown one, as Errors.forCode does."""
    for kind in (ErrorCode, NewerErrorCode):
        try:
            return kind(code)
        except ValueError:
            continue
    return ErrorCode.unknown_server_error
