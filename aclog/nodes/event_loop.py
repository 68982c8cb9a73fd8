"""The event loop of a node: uvloop's if it is installed, else asyncio's own."""

import asyncio
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from attrs import frozen

from aclog.nodes.config.node_config import NodeConfig


@frozen(kw_only=True)
class LoopKind:
    """An implementation of event loops: its name, as the log and the metrics say it, and how one is made."""

    name: str
    factory: Callable[[], asyncio.AbstractEventLoop]


ASYNCIO = LoopKind(name="asyncio", factory=asyncio.new_event_loop)


def loop_for(config: NodeConfig) -> LoopKind:
    """Return the kind of event loop for a node.

    A node with a TLS listener gets asyncio's: what a client learns of a failed handshake depends on asyncio's TLS
    (aclog.nodes.server.handshake).
    """
    if any(each.security_protocol.tls for each in config.listeners):
        return ASYNCIO
    return installed_loop()


def running_loop() -> str:
    """Return the name of the kind of event loop that runs."""
    found = installed_loop()
    module = type(asyncio.get_running_loop()).__module__
    return found.name if module.partition(".")[0] == found.name.partition(" ")[0] else ASYNCIO.name


def installed_loop() -> LoopKind:
    """Return uvloop, if it is installed."""
    if find_spec("uvloop") is None:
        return ASYNCIO
    uvloop = import_module("uvloop")
    return LoopKind(name=f"uvloop {uvloop.__version__}", factory=uvloop.new_event_loop)
