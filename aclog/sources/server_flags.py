"""Flags about running servers: addresses, ages, and the event loop that requests run on."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from aclog.config.client_config import load_client_security
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.config.properties import Properties, servers
from aclog.metalog.errors import ConfigError, StaleError
from aclog.snapshots.image import Freshness
from aclog.terminal.output import utc_text

# Flags about running servers: addresses, ages, and the event loop that requests run on.


# Bootstrap servers as a command line names them: their addresses, and the login. Nothing is connected to.


def parse_servers(flag: str, text: str | None) -> tuple[HostPort, ...]:
    """Return the addresses in the value of a flag; empty if it is not given. Raises ConfigError: an invalid address."""
    if text is None:
        return ()
    addresses = servers(Properties(values={flag: text}, where="command line"), flag)
    if not addresses:
        raise ConfigError(f"{flag}: empty: expected HOST:PORT")
    return addresses


def client_security(command_config: Path | None) -> ClientSecurity:
    """Return the security settings of a properties file; PLAINTEXT without one. Raises ConfigError: a bad file."""
    return ClientSecurity() if command_config is None else load_client_security(command_config)


# Runs a coroutine from code that is not asynchronous.


_T = TypeVar("_T")


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """Run the coroutine; in another thread if this one already runs a loop, as a notebook does."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


# The limit on the age of a followed state.


def check_age(freshness: Freshness | None, max_age: float) -> None:
    """Check that a state is not older than `max_age` seconds.

    Raises:
        StaleError: it is, or there is no confirmation; the text has its age, its time, and its server.

    """
    if freshness is None:
        raise StaleError(f"no server has confirmed the state: expected one at most {max_age:g} s old")
    if freshness.seconds > max_age:
        why = f": {freshness.problem}" if freshness.problem else ""
        raise StaleError(
            f"{freshness.server}: the state is {freshness.seconds:.1f} s old: nothing was confirmed since "
            f"{utc_text(freshness.time)}: expected at most {max_age:g} s{why}"
        )
