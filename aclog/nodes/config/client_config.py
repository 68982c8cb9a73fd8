"""Client security settings from a properties file (--command-config; AdminClientConfig's security keys)."""

from collections.abc import Mapping
from pathlib import Path

from aclog.nodes.config.jaas import PLAIN_MODULE, SCRAM_MODULE
from aclog.nodes.config.java_properties import Properties, read_properties
from aclog.nodes.config.node_config import ClientSecurity
from aclog.nodes.config.refused_keys import refuse_plugins
from aclog.nodes.config.sasl_settings import JAAS, check_mechanism, jaas_entry, login
from aclog.nodes.config.tls_settings import tls_settings
from aclog.nodes.session import SecurityProtocol

PROTOCOL = "security.protocol"
MECHANISM = "sasl.mechanism"


def load_client_security(path: Path | str) -> ClientSecurity:
    """Load the security settings from a client properties file; other keys are ignored.

    Raises:
        ConfigError: names the file, the key and what was expected; never contains a secret.

    """
    properties, _ = read_properties(Path(path))
    return parse_client_security(properties, str(path))


def parse_client_security(properties: Mapping[str, str], where: str) -> ClientSecurity:
    """Return the security settings in client properties; `where` names their source in errors.

    Raises:
        ConfigError: as `load_client_security`.

    """
    source = Properties(values=dict(properties), where=where)
    source.check_values()
    refuse_plugins(source)
    return client_security(source)


def client_security(source: Properties) -> ClientSecurity:
    """Return the security settings in properties that were already checked for plugins.

    Raises:
        ConfigError: as `load_client_security`.

    """
    protocol = _protocol(source)
    tls = tls_settings(source, sasl=protocol.sasl) if protocol.tls else None
    if not protocol.sasl:
        return ClientSecurity(security_protocol=protocol, tls=tls)
    mechanism = source.text(MECHANISM) or "GSSAPI"
    check_mechanism(source, MECHANISM, mechanism)
    if source.text(JAAS) is None:
        module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
        raise source.error(JAAS, f'not set: expected {module} required username="..." password="...";')
    entry = jaas_entry(source, mechanism, JAAS)
    return login(source, protocol, mechanism, entry=entry, key=JAAS, tls=tls)


def _protocol(properties: Properties) -> SecurityProtocol:
    name = (properties.text(PROTOCOL) or SecurityProtocol.PLAINTEXT.value).upper()
    if name not in SecurityProtocol.__members__:
        expected = ", ".join(SecurityProtocol.__members__)
        raise properties.error(PROTOCOL, f"{properties.shown(PROTOCOL)}: expected one of {expected}")
    return SecurityProtocol[name]
