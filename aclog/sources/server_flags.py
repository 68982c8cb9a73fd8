"""Bootstrap servers as a command line names them: their addresses, and the login. Nothing is connected to."""

from pathlib import Path

from aclog.metalog.errors import ConfigError
from aclog.nodes.config.addresses import servers
from aclog.nodes.config.client_config import load_client_security
from aclog.nodes.config.java_properties import Properties
from aclog.nodes.config.node_config import ClientSecurity, HostPort


def parse_servers(flag: str, text: str | None) -> tuple[HostPort, ...]:
    """Return the addresses in the value of a flag; empty if it is not given. Raises ConfigError: an invalid address."""
    if text is None:
        return ()
    found = servers(Properties(values={flag: text}, where="command line"), flag)
    if not found:
        raise ConfigError(f"{flag}: empty: expected HOST:PORT")
    return found


def client_security(command_config: Path | None) -> ClientSecurity:
    """Return the security settings of a properties file; PLAINTEXT without one. Raises ConfigError: a bad file."""
    return ClientSecurity() if command_config is None else load_client_security(command_config)
