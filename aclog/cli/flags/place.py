"""The flags of a place that a plan is made for, and of what decides there."""

from typing import TYPE_CHECKING

from aclog.cli.flags.target import TargetFlags
from aclog.metalog.errors import ConfigError

if TYPE_CHECKING:
    from aclog.planning.plan import PlaceAddress


def given_address(target: TargetFlags) -> "PlaceAddress | None":
    """Return the place that the flags name; None if they name none.

    Raises:
        ConfigError: several, an address that is none, or properties without a place that takes them.

    """
    from aclog.planning.plan import PlaceAddress, PlaceKind
    from aclog.sources.server_flags import parse_servers

    store = bool(target.authorizer_properties)
    given = {
        PlaceKind.LOG: None if target.log is None else str(target.log.absolute()),
        PlaceKind.BOOTSTRAP_SERVER: target.bootstrap_server,
        PlaceKind.BOOTSTRAP_CONTROLLER: target.bootstrap_controller,
        PlaceKind.ZOOKEEPER: "" if store else None,
    }
    named = [(kind, value) for kind, value in given.items() if value is not None]
    if not named:
        return None
    if len(named) > 1:
        raise ConfigError(f"{', '.join(f'--{kind}' for kind, _ in named)}: expected one place")
    [(kind, value)] = named
    if kind in {PlaceKind.BOOTSTRAP_SERVER, PlaceKind.BOOTSTRAP_CONTROLLER}:
        parse_servers(f"--{kind}", value)
    config = target.command_config
    if config is not None and kind not in {PlaceKind.BOOTSTRAP_SERVER, PlaceKind.BOOTSTRAP_CONTROLLER}:
        raise ConfigError("--command-config: expected --bootstrap-server or --bootstrap-controller")
    properties = {}
    if store:
        from aclog.sources.zookeeper import store_properties

        properties = store_properties(target.authorizer_properties)
        value = properties.get("zookeeper.connect", "")
    return PlaceAddress(
        kind=kind,
        value=value,
        command_config=None if config is None else str(config.absolute()),
        properties=properties,
    )


def place_address(target: TargetFlags) -> "PlaceAddress":
    """Return the one place that the flags name. Raises ConfigError: not exactly one."""
    found = given_address(target)
    if found is None:
        raise ConfigError(
            "no place is given: --log DIR, --bootstrap-server HOST:PORT, --bootstrap-controller HOST:PORT or "
            "--authorizer-properties zookeeper.connect=HOST:PORT; or a context: -c NAME"
        )
    return found
