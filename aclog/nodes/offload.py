"""Work beside the event loop: what takes long is done in a thread, so that other clients are served meanwhile."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MANY = 256
"""A request of more entries than this is worked on beside the loop: one entry takes some ten microseconds."""


async def beside(much: bool, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work` gives; in a thread if it is much. Raises what it raises."""
    if much:
        return await asyncio.to_thread(work, *args, **kwargs)
    return work(*args, **kwargs)
