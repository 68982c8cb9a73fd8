"""The choice of a state source by flags or by name."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

from attrs import define, evolve, field, frozen

from aclog.authorizer.origin import NO_ORIGINS, Origins
from aclog.authorizer.premises import ALL_KNOWN, ClusterSettings, NodeSettings, Premise, Premises
from aclog.metalog.clock import elapsed_seconds
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.snapshots.freshness import Freshness
from aclog.snapshots.image import Image
from aclog.snapshots.moments import Moment
from aclog.snapshots.state_source import StateSource
from aclog.sources.acl_lines import STDIN, LineTable, NameFile
from aclog.sources.formats.format import AclsFormat
from aclog.sources.git import GitPlace, parse_git_place
from aclog.sources.notes import Notify
from aclog.sources.read_options import ReadOptions
from aclog.sources.rule_files import AclsSource
from aclog.terminal.moment import take_moment
from aclog.terminal.notices import AgeWatch
from aclog.terminal.output import note
from aclog.terminal.progress import BYTES, progress


@runtime_checkable
class LiveSource(Protocol):
    """A running cluster, whose nodes return its settings besides the ACLs."""

    @property
    def name(self) -> str:
        """The servers that were given."""
        ...

    def cluster_settings(self) -> ClusterSettings:
        """Return the settings of its nodes, read on each call. Raises MetadataError: no server responds."""
        ...


@runtime_checkable
class ReplayedSource(Protocol):
    """A source whose states are replayed from records, of which some may be missing."""

    def gaps(self) -> tuple[Premise, ...]:
        """Return the gaps of the state that was returned last. Raises MetadataError: it cannot be read."""
        ...


@define
class ChosenSource:
    """A source, and the moment to read it at."""

    source: StateSource
    as_of: str | None
    _moment: Moment | None = field(default=None, init=False)
    _age: AgeWatch = field(factory=AgeWatch, init=False)
    _freshness: Freshness | None = field(default=None, init=False)
    """The freshness of the returned state, when it was returned."""
    _freshness_at: float = field(default=0.0, init=False)

    @property
    def moment(self) -> Moment | None:
        """The moment; None for the newest state. Raises ConfigError: neither an offset nor a time."""
        if self._moment is None and self.as_of is not None:  # read once: `1h ago` is the same moment all the while
            self._moment = take_moment(self.as_of)
        return self._moment

    def image(self) -> Image:
        """Return the state, with a progress bar during the replay, and a warning if it may be out of date.

        Raises:
            MetadataError, OSError: the source is damaged, or does not cover the moment.

        """
        moment = self.moment  # parsed first: a mistyped moment must not cost a replay
        with self.reading():
            image = self.source.image() if moment is None else self.source.image_at(moment)
        self._freshness = self.source.freshness()
        if self._freshness is not None:
            self._freshness_at = elapsed_seconds()
        self._age.tell(self._freshness)
        return image

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Show the progress of reading the source during the `with`."""
        if isinstance(self.source, AclsSource):
            with progress(f"reading {self.source.name}", BYTES) as advance:
                self.source.options = evolve(self.source.options, advance=advance)
                yield
            return
        from aclog.sources.logs import LogSource

        if isinstance(self.source, LogSource):
            with progress(f"reading {self.source.name}", BYTES) as advance:
                self.source.progress = advance
                yield
            return
        with progress(f"reading {self.source.name}", "records") as advance:
            if hasattr(self.source, "progress"):
                self.source.progress = advance
            yield

    @property
    def file_origins(self) -> Origins:
        """The locations of the returned image's rules, in files written by people; empty for JSON lines.

        A stream of JSON lines is written by programs, and output about it is read by programs.
        """
        is_stated = isinstance(self.source, AclsSource) and not isinstance(self.source.origins, LineTable)
        return self.origins if is_stated else NO_ORIGINS

    @property
    def git_place(self) -> GitPlace | None:
        """The commit and path that are read; None if it is no commit."""
        is_ref = isinstance(self.source, AclsSource) and self.source.is_ref
        return parse_git_place(self.source.name) if is_ref else None

    def topic_names(self) -> list[str]:
        """Return the topics that the source tells besides its images: those of an admin API; else none.

        Raises:
            MetadataError: no server responds, or one refuses.

        """
        if isinstance(self.source, AclsSource):
            return []
        from aclog.sources.logs import CheckpointSource, LogSource

        if isinstance(self.source, LogSource | CheckpointSource):
            return []
        from aclog.sources.live import AdminSource

        return self.source.topic_names() if isinstance(self.source, AdminSource) else []

    @property
    def is_live(self) -> bool:
        """Whether it is a running cluster."""
        return isinstance(self.source, LiveSource)

    def premises(self, properties: AbstractSet[str]) -> Premises:
        """Return the unknown premises: settings of a running cluster, and records missing from a state.

        `properties`: the properties whose values flags, a context or a settings file give.

        Raises:
            RequestError: no node of the cluster has an authorizer, so that nothing is denied there.

        """
        return premises_of(self.source, properties)

    @property
    def origins(self) -> Origins:
        """The locations of the returned image's rules."""
        return self.source.origins if isinstance(self.source, AclsSource) else NO_ORIGINS

    def warn_of_age(self) -> None:
        """Warn if the state that was returned has become old since; a command calls this that goes on using it."""
        if self._freshness is not None and self.moment is None:
            passed = elapsed_seconds() - self._freshness_at
            self._age.tell(evolve(self._freshness, seconds=self._freshness.seconds + passed, followed=False))

    def refuse_shared_stdin(self, path: str) -> None:
        """Refuse to read the ACLs and `path` both from stdin.

        Raises:
            ConfigError: both the ACLs and `path` are `-`.

        """
        if isinstance(self.source, AclsSource) and self.source.path == path == STDIN:
            raise ConfigError("--acls - and --requests -: only one of them can be stdin")


@frozen(kw_only=True)
class SourceSelection:
    """The values of the flags that name a state source; exactly one source must be given."""

    log: Path | None = None
    snapshot: Path | None = None
    acls: str | None = None
    ref: str | None = None
    """GITREF:PATH: files of ACLs as of a commit."""
    form: AclsFormat = AclsFormat.AUTO
    """The format of the files of `acls` or `ref`."""
    modules: Mapping[str, str] = field(factory=dict)
    """The directory of each Terraform module that is not among them, by its source."""
    topics: NameFile | None = None
    """The topics that exist."""
    bootstrap_controller: str | None = None
    bootstrap_server: str | None = None
    command_config: Path | None = None
    as_of: str | None = None
    max_age: float | None = None
    """The oldest accepted state of a running cluster, in seconds."""
    authorizer_properties: Sequence[str] = ()
    """KEY=VALUE properties of AclAuthorizer, whose ACLs are in ZooKeeper."""


def premises_of(source: StateSource, properties: AbstractSet[str]) -> Premises:
    """Return the unknown premises of the state that was returned last. Raises as ChosenSource.premises."""
    return settings_premises(source, properties).also(gaps_of(source))


def gaps_of(source: StateSource) -> Premises:
    """Return the gaps in the log of the state that was returned last."""
    return Premises(source.gaps()) if isinstance(source, ReplayedSource) else ALL_KNOWN


def settings_premises(source: StateSource, properties: AbstractSet[str]) -> Premises:
    """Return which settings decide in a running cluster and are unknown. Raises as ChosenSource.premises."""
    if not isinstance(source, LiveSource):
        return ALL_KNOWN
    from aclog.sources.live import refuse_without_authorizer

    settings = settings_of(source)
    refuse_without_authorizer(settings, source.name)
    return settings.premises(properties)


def settings_of(source: LiveSource) -> ClusterSettings:
    """Return the settings of a cluster's nodes, read on each call; all unknown if no node responds."""
    try:
        return source.cluster_settings()
    except MetadataError as error:
        return ClusterSettings(nodes=(NodeSettings(node="the cluster", problem=str(error)),))


def choose_source(selection: SourceSelection, notify: Notify = note) -> ChosenSource:
    """Return the one source that is given; notes of its recovery go to `notify`.

    Raises:
        ConfigError: not exactly one source, an invalid address, or a bad properties file.

    """
    sources = (
        selection.log,
        selection.snapshot,
        selection.acls,
        selection.ref,
        selection.bootstrap_controller,
        selection.bootstrap_server,
        selection.authorizer_properties or None,
    )
    if sum(each is not None for each in sources) != 1:
        raise ConfigError(
            "exactly one state source must be given: --log DIR, --snapshot FILE, --acls PATH, --ref GITREF:PATH, "
            "--bootstrap-controller HOST:PORT or --bootstrap-server HOST:PORT; or a context: -c NAME"
        )
    if selection.acls is not None or selection.ref is not None:
        return ChosenSource(_acls_source(selection, notify), selection.as_of)
    if selection.log is None and selection.snapshot is None:
        return ChosenSource(_live_source(selection, notify), selection.as_of)
    return ChosenSource(_stored_source(selection, notify), selection.as_of)


def _stored_source(selection: SourceSelection, notify: Notify) -> StateSource:
    from aclog.sources.logs import CheckpointSource, LogSource

    if selection.log is not None:
        return LogSource(selection.log, notify)
    return CheckpointSource(selection.snapshot or Path(), notify)


def _acls_source(selection: SourceSelection, notify: Notify) -> AclsSource:
    options = ReadOptions(
        form=selection.form,
        modules=selection.modules,
        topics=None if selection.topics is None else selection.topics.names,
    )
    if selection.ref is not None:
        return AclsSource(selection.ref, options=options, notify=notify, is_ref=True)
    return AclsSource(selection.acls or "", options=options, notify=notify)


def _live_source(selection: SourceSelection, notify: Notify) -> StateSource:
    # These imports are slow and only needed here: a command on a log starts without them.
    if selection.authorizer_properties:
        from aclog.sources.zookeeper import ZooKeeperSource, store_properties

        return ZooKeeperSource(store_properties(selection.authorizer_properties), notify)
    from aclog.sources.live import AdminSource, QuorumSource
    from aclog.sources.server_flags import client_security, parse_servers

    security = client_security(selection.command_config)
    config = None if selection.command_config is None else str(selection.command_config)
    if selection.bootstrap_controller is not None:
        controllers = parse_servers("--bootstrap-controller", selection.bootstrap_controller)
        return QuorumSource(controllers, security, notify, command_config=config, max_age=selection.max_age)
    brokers = parse_servers("--bootstrap-server", selection.bootstrap_server)
    return AdminSource(brokers, security, notify, command_config=config, max_age=selection.max_age)
