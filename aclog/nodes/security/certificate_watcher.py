"""Reloading of a listener's certificates when their files change."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from attrs import define, field

from aclog.metalog.errors import ConfigError
from aclog.nodes.config.node_config import TlsSettings
from aclog.nodes.security.tls import ServerContext, reload

INTERVAL_SECONDS = 3.0
"""Polling interval of the files."""

_Stamps: TypeAlias = tuple[tuple[int, int, int] | None, ...]


@define(kw_only=True)
class CertificateWatcher:
    """Watches the stores of one listener's context, starting from their state at creation."""

    context: ServerContext
    settings: TlsSettings
    _seen: _Stamps = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._seen = _stamps(self.settings)

    def check(self) -> bool:
        """Reload the files if they changed; return whether they did. Blocks.

        Raises:
            ConfigError: The new content is unusable. The context keeps its certificates, and the files are reloaded
                once they change again.

        """
        stamps = _stamps(self.settings)
        if stamps == self._seen:
            return False
        self._seen = stamps  # before loading: a broken file is reported once, not at every poll
        reload(self.context, self.settings)
        return True

    async def run(
        self,
        report: Callable[[ConfigError | None], None],
        *,
        interval: float = INTERVAL_SECONDS,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Check until cancelled; call `report` after each change, with the error if the new content is unusable."""
        while True:
            await sleep(interval)
            try:
                if await asyncio.to_thread(self.check):
                    report(None)
            except ConfigError as error:
                report(error)
            except Exception as error:  # noqa: BLE001 - keep watching whatever was wrong with this file
                report(ConfigError(f"the certificates cannot be read: {type(error).__name__}"))


def _stamps(settings: TlsSettings) -> _Stamps:
    return tuple(map(_stamp, filter(None, (settings.keystore, settings.truststore))))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Return values that change when a file is written or replaced; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
