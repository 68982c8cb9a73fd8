"""States of running clusters: by following a quorum's log, or by asking a broker's admin API (shell.source)."""

import asyncio
import atexit

from attrs import define, field

from aclog.rule_targets import connect_to_first
from aclog.sources import Notify
from authorizer.acl import AclBindingFilter, StandardAcl, StandardAclWithId
from authorizer.acls_image import AclsImage
from metalog.errors import ConfigError
from nodes.client.acl_requests import describe_acls
from nodes.config.node_config import ClientSecurity, HostPort
from nodes.observer.quorum_log import QuorumLog
from shell.source import Moment
from snapshots.image import Image
from snapshots.newer_kafka import NewerKafka
from snapshots.recovery import Progress, Recovered, recover_log

_KNOWN_SECONDS = 30.0
"""How long to look for a leader who tells the high-water mark."""
_READ_BYTES = 16 << 20


@define(eq=False)
class QuorumSource:
    """The log of a running quorum; its newest image follows it from one question to the next."""

    controllers: tuple[HostPort, ...]
    security: ClientSecurity
    notify: Notify
    progress: Progress | None = None
    _log: QuorumLog | None = field(default=None, init=False)
    _newest: Recovered | None = field(default=None, init=False)

    writable_log: None = field(default=None, init=False)
    """Nothing that is changed as a directory."""

    @property
    def name(self) -> str:
        """The controllers that were given."""
        return ",".join(map(str, self.controllers))

    @property
    def log(self) -> QuorumLog:
        """The log, which is followed live.

        Raises:
            MetadataError: nobody can be followed there.

        """
        if self._log is None:
            log = QuorumLog(servers=self.controllers, security=self.security)
            try:
                log.wait_known(_KNOWN_SECONDS)
            except BaseException:
                log.close()
                raise
            self._log = log
            atexit.register(log.close)  # a command does not close what it ends with
        return self._log

    def image(self) -> Image:
        """The newest committed state.

        Raises:
            MetadataError: it cannot be followed, or not be replayed.

        """
        log = self.log
        newest = self._newest
        while newest is None or newest.applier.next_offset < log.high_watermark():
            if newest is None or newest.applier.next_offset < log.start_offset():
                self._newest = newest = self._recover(None)
            else:
                newest.applier.apply(log.read(newest.applier.next_offset, _READ_BYTES))
        return newest.applier.image

    def image_at(self, moment: Moment) -> Image:
        """The state at a moment, as far back as the quorum's log reaches. Raises as `image`."""
        return self._recover(moment).image

    def close(self) -> None:
        """Let go of the connection; a second close is nothing."""
        if self._log is not None:
            self._log.close()

    def _recover(self, moment: Moment | None) -> Recovered:
        newer = NewerKafka(strict=False)
        found = recover_log(self.log, self.log.checkpoints(), moment, newer=newer, progress=self.progress)
        for note in found.notes:
            self.notify(note)
        return found


@define(eq=False)
class AdminSource:
    """The rules of a cluster as its admin API tells them: without ids, without a past, and nothing but rules."""

    servers: tuple[HostPort, ...]
    security: ClientSecurity

    log: None = field(default=None, init=False)
    """Nothing to follow."""
    writable_log: None = field(default=None, init=False)
    """Nothing that is changed as a directory."""

    @property
    def name(self) -> str:
        """The servers that were given."""
        return ",".join(map(str, self.servers))

    def image(self) -> Image:
        """What the cluster answers now.

        Raises:
            MetadataError: no server answers, or refuses.

        """
        rules = asyncio.run(self._ask())
        return Image(acls=AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in rules))

    def close(self) -> None:
        """Nothing is held."""

    def image_at(self, moment: Moment) -> Image:
        """Raises ConfigError: an admin API knows no past."""
        raise ConfigError(f"{self.name}: as of {moment}: an admin API tells the newest state only")

    async def _ask(self) -> list[StandardAcl]:
        async with await connect_to_first(self.servers, self.security) as connection:
            return await describe_acls(connection, AclBindingFilter())
