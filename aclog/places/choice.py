"""The choice of a place by its address. What a place is made of is imported when one is opened."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from aclog.planning.place import WritablePlace
from aclog.planning.plan import PlaceAddress, PlaceKind


@contextmanager
def open_place(
    address: PlaceAddress, notify: Callable[[str], None], *, write: bool, force: bool = False
) -> Iterator[WritablePlace]:
    """Open a place; with `write` for an apply. `force` permits a log that belongs to a Kafka node.

    Raises:
        ConfigError: an address or a property that cannot be used.
        MetadataError: it cannot be opened.

    """
    with _opened(address, notify, write=write, force=force) as place:
        yield place


def _opened(
    address: PlaceAddress, notify: Callable[[str], None], *, write: bool, force: bool
) -> AbstractContextManager[WritablePlace]:
    if address.kind is PlaceKind.LOG:
        from aclog.places.log_place import open_log_place

        return open_log_place(Path(address.value), notify, write=write, force=force)
    if address.kind is PlaceKind.ZOOKEEPER:
        from aclog.places.zookeeper_place import open_zookeeper_place

        return open_zookeeper_place(address.properties, notify)
    from aclog.nodes.client.peer import Role
    from aclog.places.server_place import open_server_place
    from aclog.sources.server_flags import client_security, parse_servers

    role = Role.BROKER if address.kind is PlaceKind.BOOTSTRAP_SERVER else Role.CONTROLLER
    config = None if address.command_config is None else Path(address.command_config)
    return open_server_place(parse_servers(f"--{address.kind}", address.value), client_security(config), role, notify)
