"""Sees when the files of a listener's certificates change, and has them read again."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from attrs import define, field

from aclog.metalog.errors import ConfigError
from aclog.nodes.config.node_config import TlsSettings
from aclog.nodes.security.tls import ServerContext, reload

INTERVAL_SECONDS = 3.0
"""How often files are looked at."""

_Stamps: TypeAlias = tuple[tuple[int, int, int] | None, ...]


@define(kw_only=True)
class CertificateWatcher:
    """Belongs to one listener's context. What stands in the files when it is made counts as read."""

    context: ServerContext
    settings: TlsSettings
    _seen: _Stamps = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._seen = _stamps(self.settings)

    def check(self) -> bool:
        """Read the files again if they changed; whether they did. It reads files: call it on a thread.

        Raises:
            ConfigError: what is in them now cannot be used. The context goes on with what it had, and the files are
                read again once they change again.

        """
        stamps = _stamps(self.settings)
        if stamps == self._seen:
            return False
        self._seen = stamps
        reload(self.context, self.settings)
        return True

    async def run(
        self,
        report: Callable[[ConfigError | None], None],
        *,
        interval: float = INTERVAL_SECONDS,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Check for ever; `report` is called after each change, with the error where what is new cannot be used."""
        while True:
            await sleep(interval)
            try:
                if await asyncio.to_thread(self.check):
                    report(None)
            except ConfigError as error:
                report(error)
            except Exception as error:  # noqa: BLE001 - whatever was wrong with one file, later ones are read still
                report(ConfigError(f"the certificates cannot be read: {type(error).__name__}"))


def _stamps(settings: TlsSettings) -> _Stamps:
    return tuple(map(_stamp, filter(None, (settings.keystore, settings.truststore))))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file is written or replaced; None where it is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
