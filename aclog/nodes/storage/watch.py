"""The watch over a running node's directory: once a second, whether what is open is still what is named."""

import asyncio
from collections.abc import Callable

from aclog.metalog.errors import LogError, MetadataError

_SECONDS = 1.0


async def watch_storage(check: Callable[[], None], lost: Callable[[MetadataError], None]) -> None:
    """Call `check` in a thread every second until it raises; then call `lost` with the error, once."""
    while True:
        await asyncio.sleep(_SECONDS)
        try:
            await asyncio.to_thread(check)
        except MetadataError as error:
            lost(error)
            return
        except OSError as error:
            lost(LogError(f"cannot check the node's directory: {error}"))
            return
