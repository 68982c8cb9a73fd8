"""The end of a server that asyncio serves in a test's process."""

import asyncio
from collections.abc import Callable

_SECONDS = 0.5


async def end_connections(server: asyncio.Server, cut: Callable[[], None]) -> None:
    """Accept no longer, cut connections until nothing else runs on this loop, and close the server.

    In this order: asyncio leaves the socket of a connection open that it accepted just before the server was closed,
    and one that it has not begun to serve is not known to `cut` yet.
    """
    for listening in server.sockets:
        asyncio.get_running_loop().remove_reader(listening.fileno())
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        cut()
        _, late = await asyncio.wait(others, timeout=_SECONDS)
        for task in late:
            task.cancel()
    server.close()
