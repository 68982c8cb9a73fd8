"""The state source that the flags of a command choose."""

from pathlib import Path

from attrs import define, frozen

from aclog.metalog.errors import ConfigError
from aclog.snapshots.image import Image
from aclog.snapshots.moments import Moment, parse_moment
from aclog.snapshots.state_source import StateSource
from aclog.sources.paths import AclsSource, CheckpointSource, LogSource, Notify
from aclog.sources.text_lines import STDIN
from aclog.terminal.notices import note
from aclog.terminal.progress import progress


@define
class ChosenSource:
    """A source, and the moment that is asked for."""

    source: StateSource
    as_of: str | None

    @property
    def moment(self) -> Moment | None:
        """The moment; None for the newest. Raises ConfigError: it is none."""
        return None if self.as_of is None else parse_moment(self.as_of)

    def image(self) -> Image:
        """The state, with a progress bar while it is replayed.

        Raises:
            MetadataError, OSError: the source is damaged or does not reach to the moment.

        """
        moment = self.moment
        with progress(f"reading {self.source.name}") as advance:
            if isinstance(self.source, LogSource):
                self.source.progress = advance
            return self.source.image() if moment is None else self.source.image_at(moment)

    def keep_stdin_for(self, path: str) -> None:
        """Refuse to read two things from stdin.

        Raises:
            ConfigError: both the rules and `path` are `-`.

        """
        if isinstance(self.source, AclsSource) and self.source.path == path == STDIN:
            raise ConfigError("--acls - and --requests -: only one of them can be stdin")


@frozen
class LiveFlags:
    """The flags that name a running cluster, as they were typed."""

    bootstrap_controller: str | None = None
    bootstrap_server: str | None = None
    command_config: Path | None = None
    authorizer_properties: tuple[str, ...] = ()
    """Those of the older authorizer, whose rules are in ZooKeeper; `acls list` has them."""


NOT_LIVE = LiveFlags()


def choose_source(
    log: Path | None,
    snapshot: Path | None,
    acls: str | None,
    as_of: str | None = None,
    notify: Notify = note,
    *,
    live: LiveFlags = NOT_LIVE,
) -> ChosenSource:
    """The one source that is given; what its recovery has to say goes to `notify`.

    Raises:
        ConfigError: none, or more than one; an address that is none, or a bad properties file.

    """
    given = (
        log, snapshot, acls, live.bootstrap_controller, live.bootstrap_server, live.authorizer_properties or None
    )  # fmt: skip
    if sum(each is not None for each in given) != 1:
        raise ConfigError(
            "exactly one state source must be given: --log DIR, --snapshot FILE, --acls FILE, "
            "--bootstrap-controller HOST:PORT or --bootstrap-server HOST:PORT"
        )
    if log is not None:
        return ChosenSource(LogSource(log, notify), as_of)
    if snapshot is not None:
        return ChosenSource(CheckpointSource(snapshot, notify), as_of)
    if acls is not None:
        return ChosenSource(AclsSource(acls), as_of)
    return ChosenSource(_live_source(live, notify), as_of)


def _live_source(live: LiveFlags, notify: Notify) -> StateSource:
    if live.authorizer_properties:
        from aclog.sources.zookeeper import ZooKeeperSource, store_properties

        return ZooKeeperSource(store_properties(live.authorizer_properties), notify)
    from aclog.sources.admin import AdminSource  # what speaks to servers takes long to import
    from aclog.sources.bootstrap import client_security, parse_servers
    from aclog.sources.quorum import QuorumSource

    security = client_security(live.command_config)
    if live.bootstrap_controller is not None:
        controllers = parse_servers("--bootstrap-controller", live.bootstrap_controller)
        return QuorumSource(controllers, security, notify)
    return AdminSource(parse_servers("--bootstrap-server", live.bootstrap_server), security, notify)
