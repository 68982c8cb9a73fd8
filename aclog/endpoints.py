"""The addresses of running servers on a command line, and how to log in there."""

from collections.abc import Sequence
from pathlib import Path

from aclog.rule_targets import TargetFlags
from aclog.zookeeper_rules import store_properties
from metalog.errors import ConfigError
from nodes.config.client_config import load_client_security
from nodes.config.endpoints import servers
from nodes.config.java_properties import Properties
from nodes.config.node_config import ClientSecurity, HostPort


def target_flags(
    log: Path | None,
    bootstrap_server: str | None,
    bootstrap_controller: str | None,
    command_config: Path | None,
    authorizer_properties: Sequence[str] = (),
) -> TargetFlags:
    """The place that the flags name.

    Raises:
        ConfigError: an address that is none, a bad properties file, a property that is none.

    """
    return TargetFlags(
        log=log,
        servers=parse_servers("--bootstrap-server", bootstrap_server),
        controllers=parse_servers("--bootstrap-controller", bootstrap_controller),
        store=store_properties(authorizer_properties),
        security=client_security(command_config),
    )


def parse_servers(flag: str, text: str | None) -> tuple[HostPort, ...]:
    """The addresses that a flag gives, none where it is not given. Raises ConfigError."""
    if text is None:
        return ()
    found = servers(Properties(values={flag: text}, where="command line"), flag)
    if not found:
        raise ConfigError(f"{flag}: empty: expected HOST:PORT")
    return found


def client_security(command_config: Path | None) -> ClientSecurity:
    """What the properties file says; plaintext and nobody where there is none. Raises ConfigError."""
    return ClientSecurity() if command_config is None else load_client_security(command_config)
