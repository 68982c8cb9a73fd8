"""The gate of prefixed ACLs: brokers before Kafka 2.0 do not look where they are (KIP-290).

AclAuthorizer adds them only if `inter.broker.protocol.version` says that no such broker is left.
"""

import re
from collections.abc import Mapping

from aclog.authorizer.control import INVALID_REQUEST
from aclog.authorizer.errors import AclRequestError
from aclog.metalog.errors import ConfigError

PROTOCOL_VERSION = "inter.broker.protocol.version"

_CLOSED = re.compile(r"(0\.\d+\.\d+|1\.[01])(-IV\d+)?|2\.0-IV0")
"""Before 2.0-IV1, in which brokers learned of prefixed ACLs."""

_OPEN = re.compile(r"(2\.[0-8]|3\.\d|4\.0)(-IV\d+)?")
"""Later ones that Kafka 3.9 knows; 2.0 alone is 2.0-IV1."""


def takes_prefixed(properties: Mapping[str, str]) -> bool:
    """Return whether prefixed ACLs may be added, by a server's properties; the default is Kafka 3.9's own version.

    Raises:
        ConfigError: a version that Kafka does not have.

    """
    text = properties.get(PROTOCOL_VERSION, "3.9").strip()
    # As in Kafka, a release's name may go on: 2.0.1 is 2.0 (MetadataVersion.fromVersionString).
    version = ".".join(text.split(".")[: 3 if text.startswith("0.") else 2])
    is_closed = _CLOSED.fullmatch(version) is not None
    if not is_closed and _OPEN.fullmatch(version) is None:
        raise ConfigError(f"{PROTOCOL_VERSION} {text!r}: expected a version of Kafka up to 3.9, such as 3.9 or 1.1-IV0")
    return not is_closed


def prefixed_error() -> AclRequestError:
    """Return the error of a prefixed ACL at a closed gate, in Kafka's words."""
    return AclRequestError(
        INVALID_REQUEST,
        "Failed to create ACL: Adding ACLs on prefixed resource patterns requires inter.broker.protocol.version of "
        "2.0-IV1 or greater",
    )
