"""The choice of a state source by flags or by name."""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from copy import copy
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from attrs import evolve, field

from aclog.authorizer.acl import (
    NO_ORIGINS,
    AclBindingFilter,
    ChangePlace,
    FileOrigin,
    Origins,
    StandardAcl,
    origin_text,
)
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclPermissionType
from aclog.authorizer.standard import ALL_KNOWN, ClusterSettings, NodeSettings, Premise, Premises
from aclog.authorizer.symbols import SYMBOLS, is_symbol, symbols_of
from aclog.metalog.errors import ConfigError, LogError, MetadataError, ReplayError, plural
from aclog.metalog.native import regex
from aclog.metalog.primitives import elapsed_seconds
from aclog.metalog.text_forms import comma_parts
from aclog.metalog.values import define, frozen
from aclog.snapshots.image import Freshness, Image, StateSource
from aclog.snapshots.moments import Moment, moment_text
from aclog.sources.acl_lines import STDIN, LineTable, NameFile, accept, blocks, display_name, without_mark
from aclog.sources.formats.format import LARGEST, AclsFormat
from aclog.sources.formats.unread import Dormant, Unread, UnreadKind
from aclog.sources.notes import Notify
from aclog.sources.read_options import NO_INPUTS, FoundRules, ModuleInputs, ReadOptions
from aclog.terminal.moment import take_moment
from aclog.terminal.notices import BYTES, Advance, AgeWatch, progress
from aclog.terminal.output import note

if TYPE_CHECKING:
    from aclog.snapshots.log_image import LogImages
    from aclog.sources.formats.clusters import Layout
    from aclog.sources.formats.rule import FileTree, LocatedRule
    from aclog.sources.git import GitPlace
    from aclog.sources.rendering import Rendered

# ACLs from files: JSON lines and GitOps files, of a directory or a commit.


# Rules from `--acls PATH` and `--ref GITREF:PATH`: JSON lines, as a stream, or GitOps files, as a whole.
#
# The parsers of all formats take a tenth of a second to import: JSON lines are read without them.


_BLOCK_LINES = 1_000


def find_rules(path: str, options: ReadOptions, check: Callable[[StandardAcl], None] = accept) -> FoundRules:
    """Return the rules of a file, of stdin (`-`) or of a directory.

    Raises:
        ConfigError: something that is not a rule, or refused by `check`, with its location; a damaged file; or a log or
            a checkpoint, which another flag reads.
        OSError: a file cannot be read.

    """
    if path == STDIN:
        return _file_rules(display_name(path), blocks(path, options.advance), path, options, check=check)
    location = Path(path)
    if location.is_dir():
        from aclog.metalog.filelog.files import list_checkpoints, list_segments
        from aclog.sources.formats.rule import DirectoryTree
        from aclog.sources.rule_trees import tree_rules

        if list_segments(location) or list_checkpoints(location):
            raise ConfigError(f"{path}: a directory with a log, no files of rules: expected --log instead of --acls")
        return tree_rules(DirectoryTree(path, strict=options.strict), options, check)
    if location.suffix == ".checkpoint":
        raise ConfigError(f"{path}: a checkpoint, no file of rules: expected --snapshot instead of --acls")
    return _file_rules(path, blocks(path, options.advance), path, options, check=check)


def ref_rules(text: str, options: ReadOptions, check: Callable[[StandardAcl], None] = accept) -> FoundRules:
    """Return the rules of a file or a directory as of a git commit: GITREF:PATH. Raises ConfigError as find_rules."""
    from aclog.sources.formats.rule import unzipped
    from aclog.sources.git import GitTree, parse_git_place
    from aclog.sources.rule_trees import tree_rules

    with GitTree(place=parse_git_place(text)) as tree:
        if tree.file is None:
            return tree_rules(tree, options, check)
        lines = unzipped(tree.read(tree.file), tree.name).split(b"\n")
        chunks = (lines[at : at + _BLOCK_LINES] for at in range(0, len(lines), _BLOCK_LINES))
        return _file_rules(tree.display(tree.file), chunks, tree, options, check=check)


def _file_rules(
    name: str,
    chunks: Iterator[list[bytes]],
    beside: "FileTree | str",
    options: ReadOptions,
    *,
    check: Callable[[StandardAcl], None],
) -> FoundRules:
    """Return the rules of one file, whose lines arrive in blocks; JSON lines are not read as a whole.

    `beside`: the tree of the file, or the path of a file in a directory.
    """
    chunks = without_mark(chunks)
    bounded = _bounded(name, chunks)
    first = [] if options.form is AclsFormat.JSONL else list(_until_text(bounded))
    if options.form is AclsFormat.JSONL or (options.form is AclsFormat.AUTO and _is_json_line(first)):
        table = LineTable(name)
        return FoundRules(rules=table.parsed(chain(first, chunks), check), origins=table)
    from aclog.sources.formats.rule import DirectoryTree
    from aclog.sources.rule_trees import content_rules

    content = b"\n".join(line for lines in chain(first, bounded) for line in lines)
    tree = DirectoryTree(beside) if isinstance(beside, str) else beside
    return content_rules(name, content, tree, options, check=check)


def _bounded(name: str, chunks: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
    """Yield the blocks of a file that is held as a whole: a small file may decompress to more than the memory."""
    size = 0
    for lines in chunks:
        size += sum(map(len, lines)) + len(lines)
        if size > LARGEST:
            raise ConfigError(f"{name}: larger than {LARGEST >> 20} MiB")
        yield lines


def _until_text(chunks: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
    """Yield blocks until one has a line that is not blank."""
    for lines in chunks:
        yield lines
        if any(line and not line.isspace() for line in lines):
            return


def _is_json_line(first: Sequence[Sequence[bytes]]) -> bool:
    """Return whether the first line that is not blank may be an ACL; so is that of an empty file."""
    line = next((line for lines in first for line in lines if line and not line.isspace()), None)
    if line is None:
        return True
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "resourceType" in value


# A state source of ACLs in files: JSON lines, or files of GitOps tools in a repository.


_MANY_FILES = 300
"""A process takes a tenth of a second, with what it passes on, and so many files of rules at least three."""


@define(eq=False, repr=False)
class AclsSource:
    """ACLs in JSON lines, from a file or stdin, or in GitOps files."""

    path: str
    """The path of a file or directory; with `is_ref` GITREF:PATH."""
    check: Callable[[StandardAcl], None] = accept
    """Raises ConfigError on an ACL that the command refuses; called before the first image."""
    options: ReadOptions = field(factory=ReadOptions)
    notify: Notify | None = None
    is_ref: bool = field(default=False, kw_only=True)
    """Whether they are read as of a git commit."""
    rendered: "Rendered | None" = field(default=None, kw_only=True)
    """The output of a command with the ACLs; then there is no path."""
    _image: Image | None = field(default=None, init=False)
    _origins: Origins = field(default=NO_ORIGINS, init=False)
    _symbolic: tuple[StandardAcl, ...] = field(default=(), init=False)
    """The image's rules with symbols."""
    _unread: tuple[Unread, ...] = field(default=(), init=False)
    nothing_read: str | None = field(default=None, init=False)
    """Why no file was read, where that is no error; None before there is an image."""
    layout: "Layout | None" = field(default=None, init=False)
    """What distinguishes the clusters of the rules; None: they are of one, or not read yet."""
    dormant: tuple[Dormant, ...] = field(default=(), init=False)
    """Statements that make no rules by the values that were read; empty before there is an image."""
    topics: tuple[tuple[str, FileOrigin], ...] = field(default=(), init=False)
    """The topics that the files declare, and where; a name with an unknown part is a symbol. Empty before there is an
    image."""
    is_whole: bool = field(default=True, init=False)
    """Whether all files were read."""
    own_paths: frozenset[str] | None = field(default=None, init=False)
    """The paths of the files of the rules, of a part of a source; None: of all."""

    _ahead: Callable[[], FoundRules] | None = field(default=None, init=False)
    """Returns the rules, which another process reads; None: none does."""

    log: None = field(default=None, init=False)
    """None: there is no log to follow."""

    change_place: ChangePlace = field(factory=ChangePlace, init=False)
    """A cluster with an unknown address."""

    @property
    def name(self) -> str:
        """The file or directory."""
        return display_name(self.path)

    @property
    def origins(self) -> Origins:
        """The locations of the image's rules; empty before there is one."""
        return self._origins

    @property
    def unread(self) -> tuple[Unread, ...]:
        """The content that was not read, may hold rules and is not accepted; empty before there is an image."""
        return self._unread

    def gaps(self) -> tuple[Premise, ...]:
        """Return the premises that unread content states no rule, and about the symbols of the rules."""
        return (*unread_premises(self.name, self._unread), *symbol_gaps(self._symbolic, self._origins))

    def image(self) -> Image:
        """Return a state with these ACLs and nothing else.

        Raises:
            ConfigError: a line that is not an ACL, or a duplicate ACL or id.
            OSError: the file cannot be read.

        """
        if self._image is None:
            rules = self._rules() if self._ahead is None else self._ahead()
            if self.notify is not None:
                for text in rules.notes:
                    self.notify(text)
            try:
                acls = AclsImage.from_acls(rules.rules)
            except ReplayError as error:
                raise ConfigError(f"{self.name}: {error.what}") from error
            self._image, self._origins = Image(acls=acls), rules.origins
            self._symbolic = acls.symbolic()
            self._unread = not_accepted(rules.unread, self.options.accept_unread)
            self.nothing_read, self.layout, self.topics = rules.nothing_read, rules.layout, rules.topics
            self.dormant = rules.dormant
            self.is_whole = not self._unread
        return self._image

    def part(
        self,
        rules: "Iterable[LocatedRule]",
        unread: Iterable[Unread],
        dormant: Iterable[Dormant],
        topics: Iterable[tuple[str, FileOrigin]],
        paths: frozenset[str],
    ) -> "AclsSource":
        """Return a source of some of the rules, with some of the unread content and of the topics.

        There must be an image, of files that have a layout. `paths`: of the files of the rules.
        """
        from aclog.sources.formats.rule import StatedRules

        stated = StatedRules.of_rules(rules)
        part = copy(self)
        acls = AclsImage.from_acls(stated.rules())
        part._image, part._origins = Image(acls=acls), stated
        part._symbolic = acls.symbolic()
        part._unread, part.topics, part.layout, part.own_paths = tuple(unread), tuple(topics), None, paths
        part.dormant = tuple(dormant)
        return part

    @contextmanager
    def read_ahead(self) -> Iterator[None]:
        """Have another process read the rules during the `with`, if they are those of many files; for `image`."""
        if self._image is not None or self.rendered is not None or not self._has_many_files():
            yield
            return
        from aclog.sources.forks import ahead

        with ahead(self._rules) as result:
            self._ahead = result
            try:
                yield
            finally:
                self._ahead = None

    def _has_many_files(self) -> bool:
        if self.path == STDIN or (not self.is_ref and not Path(self.path).is_dir()):
            return False
        if self.is_ref:
            from aclog.sources.git import file_count

            return file_count(self.path) >= _MANY_FILES
        files = chain.from_iterable(names for _, _, names in os.walk(self.path))
        return next(islice(files, _MANY_FILES, None), None) is not None

    def _rules(self) -> FoundRules:
        if self.rendered is not None:
            from aclog.sources.rule_trees import rendered_rules

            return rendered_rules(self.rendered, self.options, self.check)
        find = ref_rules if self.is_ref else find_rules
        return find(self.path, self.options, self.check)

    def with_contents(self, contents: Mapping[str, bytes]) -> FoundRules:
        """Return the rules of the files as they are now, some with other contents, by the file of their locations.

        Raises:
            ConfigError: as find_rules; or the rules are not of files on the disk.
            OSError: a file cannot be read.

        """
        if self.is_ref or self.rendered is not None or self.path == STDIN:
            raise ConfigError(f"{self.name}: not files on the disk")
        from aclog.sources.formats.rule import EditedTree

        options, tree = evolve(self.options, advance=None), EditedTree(self.path, self.options.strict, contents)
        if Path(self.path).is_dir():
            from aclog.sources.rule_trees import tree_rules

            return tree_rules(tree, options, self.check)
        content = contents.get(self.path)
        lines = blocks(self.path, None) if content is None else iter([content.split(b"\n")])
        return _file_rules(self.path, lines, tree, options, check=self.check)

    def freshness(self) -> None:
        """Return None: a file is read as it is."""

    def close(self) -> None:
        """Do nothing: no file is kept open."""

    def image_at(self, moment: Moment) -> Image:
        """Raise ConfigError: a file of ACLs has no history."""
        raise ConfigError(f"{self.name}: as of {moment_text(moment)}: a file of ACLs has one state only")


def open_path(path: str, notify: Notify, progress: Advance | None = None) -> StateSource:
    """Return the source at a path: a directory is a log, `*.checkpoint` a checkpoint, anything else a file of ACLs.

    Raises:
        LogError: there is no such file.

    """
    if path == STDIN:
        return AclsSource(path)
    location = Path(path)
    if not location.exists():
        raise LogError(f"{path}: no such file or directory")
    if location.is_dir():
        from aclog.sources.logs import LogSource

        return LogSource(location, notify, progress, log_images())
    if ".checkpoint" not in location.name:
        return AclsSource(path)
    from aclog.sources.checkpoint import CheckpointSource

    return CheckpointSource(location, notify)


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


_MOST_FILTERS = 16
"""Each filter is a request: a broker sends all of its ACLs sooner than the answers to many."""


@define
class ChosenSource:
    """A source, and the moment to read it at."""

    source: StateSource
    as_of: str | None
    is_restricted: bool = field(default=False, init=False)
    """Whether ACLs are missing from its images, as nothing but the answer to a question was requested."""
    _moment: Moment | None = field(default=None, init=False)
    _age: AgeWatch = field(factory=AgeWatch, init=False)
    _freshness: Freshness | None = field(default=None, init=False)
    """The freshness of the returned state, when it was returned."""
    _freshness_at: float = field(default=0.0, init=False)
    _premises: dict[frozenset[str], Premises] = field(factory=dict, init=False)
    """Of the returned state, by the properties that are given."""

    @property
    def moment(self) -> Moment | None:
        """The moment; None for the newest state. Raises ConfigError: neither an offset nor a past time."""
        if self._moment is None and self.as_of is not None:  # read once: `1h ago` is the same moment all the while
            self._moment = take_moment(self.as_of, of_state=True)
        return self._moment

    def image(self) -> Image:
        """Return the state, with a progress bar during the replay, and a warning if it may be out of date.

        Raises:
            MetadataError, OSError: the source is damaged, or does not cover the moment.

        """
        moment = self.moment  # parsed first: a mistyped moment must not cost a replay
        with self.reading():
            image = self.source.image() if moment is None else self.source.image_at(moment)
        self._premises.clear()
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
        from aclog.sources.checkpoint import CheckpointSource

        if isinstance(self.source, CheckpointSource):
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
    def unread(self) -> tuple[Unread, ...]:
        """The content of the source that was not read, may hold rules and is not accepted."""
        return self.source.unread if isinstance(self.source, AclsSource) else ()

    @property
    def nothing_read(self) -> str | None:
        """Why no file was read, of a source that may be empty."""
        return self.source.nothing_read if isinstance(self.source, AclsSource) else None

    @property
    def git_place(self) -> "GitPlace | None":
        """The commit and path that are read; None if it is no commit."""
        if not isinstance(self.source, AclsSource) or not self.source.is_ref:
            return None
        from aclog.sources.git import parse_git_place

        return parse_git_place(self.source.name)

    def restrict(self, filters: Sequence[AclBindingFilter]) -> None:
        """Have a broker send only the ACLs that match one of some filters: nothing else of the images will be read.

        Other sources are read as a whole.
        """
        if self.is_live and len(filters) <= _MOST_FILTERS:
            from aclog.sources.live import AdminSource

            if isinstance(self.source, AdminSource):
                self.source.filters = tuple(filters)
                self.is_restricted = AclBindingFilter() not in self.source.filters and bool(filters)

    def topic_names(self) -> list[str]:
        """Return the topics that the source has besides its images: those of an admin API; else empty.

        Raises:
            MetadataError: no server responds, or one refuses.

        """
        if isinstance(self.source, AclsSource):
            return []
        from aclog.sources.checkpoint import CheckpointSource

        if isinstance(self.source, CheckpointSource):
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
        stated = frozenset(properties)
        if stated not in self._premises:
            self._premises[stated] = premises_of(self.source, stated)
        return self._premises[stated]

    def has_premises(self, properties: AbstractSet[str]) -> bool:
        """Return whether these premises of the returned state are read, and so are noted already."""
        return frozenset(properties) in self._premises

    def note_without_authorizer(self) -> None:
        """Print a note if the cluster has no authorizer. A broker refuses to list ACLs then; a controller has its log.

        Not of a past moment: nodes return the settings of now.
        """
        if self.source.change_place.bootstrap_controller is None or self.moment is not None:
            return
        from aclog.sources.live import QuorumSource, no_authorizer_text  # what connects, which other sources need not

        if isinstance(self.source, QuorumSource):
            text = no_authorizer_text(settings_of(self.source), self.source.name)
            if text is not None:
                note(text)

    @property
    def origins(self) -> Origins:
        """The locations of the returned image's rules."""
        return self.source.origins if isinstance(self.source, AclsSource) else NO_ORIGINS

    def warn_of_age(self) -> None:
        """Warn if the returned state has become old since; called by a command that still uses it."""
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
    rendered: "Rendered | None" = None
    """The output of a command with the ACLs."""
    form: AclsFormat = AclsFormat.AUTO
    """The format of the files of `acls` or `ref`."""
    modules: Mapping[str, str] = field(factory=dict)
    """The directory of each Terraform module that is not among them, by its source."""
    inputs: ModuleInputs = NO_INPUTS
    """Values of Terraform's variables, and the workspace."""
    topics: NameFile | None = None
    """The topics that exist."""
    exclude: tuple[str, ...] = ()
    """Globs of files that are not read."""
    accept_unread: frozenset[str] = frozenset()
    """Labels of content that may stay unread."""
    may_be_empty: bool = False
    """Whether a directory without a file of rules is a state without rules."""
    notes_clusters: bool = True
    """Whether a note states that the rules of several clusters are read as those of one."""
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
        selection.rendered,
        selection.bootstrap_controller,
        selection.bootstrap_server,
        selection.authorizer_properties or None,
    )
    if sum(each is not None for each in sources) != 1:
        raise ConfigError(
            "exactly one state source must be given: the argument SOURCE (`aclog who-can SOURCE ...`), or --log DIR, "
            "--snapshot FILE, --acls PATH, --ref GITREF:PATH, "
            "--bootstrap-controller HOST:PORT or --bootstrap-server HOST:PORT; or a context: -c NAME"
        )
    if selection.acls is not None or selection.ref is not None or selection.rendered is not None:
        return ChosenSource(_acls_source(selection, notify), selection.as_of)
    if selection.log is None and selection.snapshot is None:
        return ChosenSource(_live_source(selection, notify), selection.as_of)
    return ChosenSource(_stored_source(selection, notify), selection.as_of)


def log_images() -> "LogImages | None":
    """Return where the states of large logs are kept for the next command; None if the environment turns it off."""
    from aclog.snapshots.log_image import LogImages, cache_directory

    directory = cache_directory(os.environ, Path.home())
    return None if directory is None else LogImages(directory=directory)


def _stored_source(selection: SourceSelection, notify: Notify) -> StateSource:
    if selection.log is not None:
        from aclog.sources.logs import LogSource

        return LogSource(selection.log, notify, images=log_images())
    from aclog.sources.checkpoint import CheckpointSource

    return CheckpointSource(selection.snapshot or Path(), notify)


def _acls_source(selection: SourceSelection, notify: Notify) -> AclsSource:
    options = ReadOptions(
        form=selection.form,
        modules=selection.modules,
        inputs=selection.inputs,
        topics=None if selection.topics is None else selection.topics.names,
        exclude=selection.exclude,
        accept_unread=selection.accept_unread,
        may_be_empty=selection.may_be_empty,
        notes_clusters=selection.notes_clusters,
    )
    if selection.rendered is not None:
        return AclsSource(selection.rendered.name, options=options, notify=notify, rendered=selection.rendered)
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


# Values of flags on how files of rules are read.


_NAME = regex(r"[^\W\d][\w-]*")


def parse_values(texts: Iterable[str], flag: str = "--var") -> dict[str, str]:
    """Return the value of each variable; the last of several wins. Raises ConfigError: not NAME=VALUE."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not _NAME.fullmatch(name.strip()):
            raise ConfigError(f"{flag} {text[:60]!r}: expected NAME=VALUE")
        values[name.strip()] = value
    return values


def parse_accepted(texts: Iterable[str]) -> frozenset[str]:
    """Return the labels of `--accept-unread`: kinds, or kinds with a name, separated by commas.

    Raises:
        ConfigError: an unknown kind.

    """
    labels = [part for text in texts for part in comma_parts(text)]
    for label in labels:
        kind = label.partition(":")[0]
        if kind not in set(UnreadKind):
            raise ConfigError(f"--accept-unread {label[:60]!r}: expected one of {', '.join(UnreadKind)}, or KIND:NAME")
    return frozenset(labels)


# Premises of every answer about rules in files: unread content, and symbols.


UNREAD = "unread content"
"""The name of the premise."""
_NAMED = 3


def not_accepted(unread: Iterable[Unread], accepted: Collection[str]) -> tuple[Unread, ...]:
    """Return the content that was not read and that no label accepts."""
    return tuple(each for each in unread if each.kind not in accepted and each.label not in accepted)


def unread_premises(name: str, unread: Sequence[Unread]) -> Iterator[Premise]:
    """Yield the premise that unread content of a source has no rules; none without any."""
    if unread:
        first = unread[0]
        yield Premise(
            name=UNREAD,
            problem=f"{plural(len(unread), 'object')} of {name} not read, the first in {first.file}:{first.line}",
            unless="rules in content that was not read decide otherwise",
            settled_by="--exclude GLOB or --accept-unread KIND",
            denies=True,
        )


def symbol_gaps(rules: Sequence[StandardAcl], origins: Origins) -> tuple[Premise, ...]:
    """Return the premise that a symbol of some rules may turn out to be any principal, name or host.

    `rules`: those with symbols (aclog.authorizer.symbols).
    """
    if not rules:
        return ()
    first = dict.fromkeys(f"{symbol}{_symbol_place(rule, origins)}" for rule in rules for symbol in symbols_of(rule))
    listed = ", ".join(list(first)[:_NAMED])
    more = f" and {len(first) - _NAMED:,} more" if len(first) > _NAMED else ""
    # an ALLOW on a name also closes it to all others, where resources without ACLs are open
    denies = not all(rule.permission_type == AclPermissionType.ALLOW for rule in rules) or any(
        is_symbol(rule.resource_name) for rule in rules
    )
    return (
        Premise(
            name=SYMBOLS,
            problem=f"{listed}{more}",
            unless="a value known after apply is, or covers, the principal, the name or the host",
            settled_by="a plan or a state by terraform show -json",
            denies=denies,
        ),
    )


def _symbol_place(rule: StandardAcl, origins: Origins) -> str:
    places = origins.of(rule)
    return f" ({origin_text(places[0])})" if places else ""
