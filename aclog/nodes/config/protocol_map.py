"""Which security protocol each listener name stands for (KafkaConfig.effectiveListenerSecurityProtocolMap)."""

from collections.abc import Mapping

from aclog.nodes.config.java_properties import Properties
from aclog.nodes.session import SecurityProtocol

PROTOCOL_MAP = "listener.security.protocol.map"
_SECURE = {protocol.value for protocol in SecurityProtocol} - {SecurityProtocol.PLAINTEXT.value}


def protocol_map(
    properties: Properties, listener_names: tuple[str, ...], controller_names: tuple[str, ...]
) -> Mapping[str, SecurityProtocol]:
    """Listener names, upper case, and their protocols.

    By default each protocol's name is a listener's, and a controller listener of another name is PLAINTEXT, unless one
    of the names that are used stands for something safer.

    Raises:
        ConfigError: an entry that is not NAME:PROTOCOL, or an unknown protocol.

    """
    if properties.text(PROTOCOL_MAP) is not None:
        return dict(_entry(properties, part) for part in properties.items(PROTOCOL_MAP) or ())
    default = {protocol.value: protocol for protocol in SecurityProtocol}
    if _SECURE & {*listener_names, *controller_names}:
        return default
    return default | {name.upper(): SecurityProtocol.PLAINTEXT for name in controller_names}


def _entry(properties: Properties, part: str) -> tuple[str, SecurityProtocol]:
    name, colon, protocol = (text.strip() for text in part.rpartition(":"))
    if not colon or not name:
        raise properties.error(PROTOCOL_MAP, f"{part!r}: expected NAME:PROTOCOL")
    if protocol.upper() not in SecurityProtocol.__members__:
        expected = ", ".join(SecurityProtocol.__members__)
        raise properties.error(PROTOCOL_MAP, f"{protocol!r}: expected one of {expected}")
    return name.upper(), SecurityProtocol[protocol.upper()]
