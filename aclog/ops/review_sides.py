"""The two sides of a review: what is read of each, where it is located, and what was not read."""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import cache, cached_property, partial
from pathlib import Path

from attrs import evolve, field

from aclog.analysis.policy import Policy
from aclog.analysis.review.review import Item, LinkedPlace, Placement, UnreadItem
from aclog.authorizer.acl import FileOrigin, ModuleCall
from aclog.authorizer.settings import Generation
from aclog.metalog.errors import NO_SUCH_PATH, ConfigError, plural, printable
from aclog.metalog.values import frozen
from aclog.ops.policies import StatedSettings, policy_by, settings_by, warn_of_super_users
from aclog.snapshots.deciding_kafka import deciding_kafka
from aclog.snapshots.image import Image
from aclog.sources.acl_lines import NameFile
from aclog.sources.choice import AclsSource, ChosenSource, SourceSelection, choose_source, not_accepted, parse_accepted
from aclog.sources.cluster_parts import reading_ahead
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.unread import Dormant, Unread, UnreadKind
from aclog.sources.git import (
    GitPlace,
    HostedLines,
    changed_files,
    commit_id,
    default_base,
    default_branch,
    exists,
    file_content,
    merge_base,
    path_from_top,
    submodules,
    top_directory,
    way_out,
)
from aclog.sources.read_options import NO_INPUTS, ModuleInputs
from aclog.sources.rendering import PATIENCE_S, RenderCommand, Rendered, parse_command, render
from aclog.sources.repository import SETTINGS_FILE, RepositorySettings, render_commands
from aclog.sources.toml import parse_toml
from aclog.terminal.output import note

# What is reviewed.


NEVER = "never"


@frozen(kw_only=True)
class ReviewedChange:
    """The two sides: where the rules are, and of which commits."""

    path: str | None
    """The file or directory of rules; None: that of the settings."""
    base: str | None = None
    """The commit to compare with: the merge base of the head and this branch, tag or commit; None: the default
    branch."""
    head: str | None = None
    """The commit to review; None: the working tree."""
    form: AclsFormat | None = None
    modules: Mapping[str, str] = field(factory=dict)
    """The directory of each Terraform module that is not among the files, by its source."""
    exclude: tuple[str, ...] = ()
    """Globs of files that are not read."""
    accept_unread: tuple[str, ...] = ()
    """Content that may stay unread, as `--accept-unread` takes it."""
    inputs: ModuleInputs = NO_INPUTS
    """What the root modules of Terraform get, besides that of the settings."""
    render: str | None = None
    """A command whose output is the rules of a side."""
    render_configured: bool = False
    """Whether to run the command in the aclog.toml of the base, if it has one."""
    render_timeout: float = PATIENCE_S
    """How long the command may take on a side, in seconds."""
    cluster: str = ""
    """The name of the cluster in aclog.toml, if there are several."""


# The two sides of a review: the rules of a commit, and those of another or of the working tree.


_SHORT = 10
"""Digits of a commit's id, as people read it."""


@frozen(eq=False, kw_only=True)
class Side:
    """The rules of one side."""

    name: str
    """Such as `main (3fa08c21d4)`, or `the working tree`."""
    ref: str | None
    choice: ChosenSource | None
    """None if the path is not there: no rules."""
    image: Image
    authorizer: StatedSettings
    rendered: Rendered | None = None
    """The output of a command, if the rules are in one."""

    @property
    def output(self) -> str | None:
        """What locations name that output; None without one."""
        return None if self.rendered is None else self.rendered.name

    @property
    def may_have_failed(self) -> bool:
        """Whether a command wrote nothing, or something to stderr, though it did not fail."""
        rendered = self.rendered
        return rendered is not None and (rendered.warning is not None or not rendered.output.strip())

    @property
    def unread(self) -> Sequence[Unread]:
        """What may hold rules and was not read."""
        return () if self.choice is None else self.choice.unread

    @property
    def dormant(self) -> Sequence[Dormant]:
        """What makes no rules by the values that were read, and is not accepted."""
        source = None if self.choice is None else self.choice.source
        if not isinstance(source, AclsSource):
            return ()
        accepted = source.options.accept_unread
        return [each for each in source.dormant if not_accepted((each.unread,), accepted)]

    @cached_property
    def placement(self) -> Placement:
        """Where the rules stand."""
        if self.choice is None:
            return Placement()
        ref = self.ref
        if ref is None:
            return Placement(origins=self.choice.origins, path_of=cache(partial(self._path, top=top_directory())))
        return Placement(origins=self.choice.origins, path_of=lambda file: file.removeprefix(f"{ref}:"))

    def _path(self, file: str, top: Path) -> str:
        return file if file == self.output else path_from_top(file, top=top)

    def with_choice(self, choice: ChosenSource | None) -> "Side":
        """Return the side with the rules of a part of its source."""
        return self if choice is None else evolve(self, choice=choice, image=choice.image())

    def without_ref(self, text: str) -> str:
        """Return a text whose locations do not name the commit, so that it equals that of another side."""
        return text if self.ref is None else text.replace(f"{self.ref}:", "")


@frozen(eq=False, kw_only=True)
class ReviewSides:
    """Both sides, and the files that are not the same in both."""

    base: Side
    head: Side
    changed: frozenset[str]
    """From the top of the repository; all files, not only those of rules."""
    base_commit: str
    head_commit: str | None
    """None for the working tree."""
    doubts: tuple[str, ...] = ()
    """Why the sides may not be what people think they are."""
    command: RenderCommand | None = None
    """The command whose output is the rules of both sides."""

    @cached_property
    def generations(self) -> tuple[Generation, ...]:
        """The generations of Kafka that may decide on both sides, if they do not decide alike; else one generation."""
        sides = (self.base, self.head)
        return max((deciding_kafka(each.image, each.authorizer.generation).generations for each in sides), key=len)

    def policies(self, side: Side, authorizer: StatedSettings | None = None) -> dict[Generation, Policy]:
        """Return the policy of a side for each generation; `authorizer`: by other settings than its own.

        Warns of super users in other settings that are likely a mistake; those of the sides are checked when read.

        Raises:
            ConfigError: a super user without a colon.

        """
        if authorizer is None or settings_by(authorizer) == settings_by(side.authorizer):
            return self._own_policies[side]
        warn_of_super_users(authorizer)
        return self._policies(side, authorizer)

    @cached_property
    def _own_policies(self) -> dict[Side, dict[Generation, Policy]]:
        """The policies of both sides by their own settings, by side."""
        return {side: self._policies(side, side.authorizer) for side in (self.base, self.head)}

    def _policies(self, side: Side, stated: StatedSettings) -> dict[Generation, Policy]:
        generations = self.generations if stated.generation is None else (stated.generation,)
        return {each: policy_by(side.image, stated.of_generation(each)) for each in generations}

    def head_has(self, file: str) -> bool:
        """Return whether the head has a file, by its path from the top of the repository."""
        if self.head_commit is None:
            return (top_directory() / file).exists()
        return exists(GitPlace(ref=self.head_commit, path=file))


@frozen(kw_only=True)
class SideReader:
    """Reads both sides the same way."""

    change: ReviewedChange
    path: str
    topics: NameFile | None
    settings: RepositorySettings

    def read(self) -> ReviewSides:
        """Read both sides; warn of super users that are likely unintended.

        Raises:
            ConfigError: a commit that this clone does not have, a path that is on neither side, malformed files, or a
                super user without a colon.
            OSError: a file cannot be read.

        """
        warn_of_super_users(self.settings.authorizer)
        path = path_from_top(self.path)
        head_ref = self.change.head
        head_commit = None if head_ref is None else _commit(head_ref)
        base_ref, doubts = _parted(self.change.base or default_base(), head_commit or "HEAD", head_ref or "HEAD")
        self._check_var_files(base_ref, head_ref)
        command = self._command(base_ref, doubts)
        place = None if head_ref is None else GitPlace(ref=head_ref, path=path)
        with self._reading_ahead(place, command) as choice:
            base = self._side(GitPlace(ref=base_ref, path=path), command)
            head = self._working_tree(command, choice) if place is None else self._side(place, command, choice)
        if base.choice is head.choice is None:
            raise ConfigError(f"{self.path}: neither {base.name} nor {head.name} has it")
        for side in (base, head):
            if side.choice is None:
                doubts.append(f"{self.path}: {side.name} does not have it, so it has no rules")
            elif side.choice.nothing_read is not None and command is not None:
                doubts.append(f"{command.text}: wrote no rules of {side.name}")
            elif side.choice.nothing_read is not None:
                doubts.append(f"{self.path}: {side.name} has no file of a known format, so no rules")
        if head.choice is not None and head.choice.nothing_read is not None and head.may_have_failed:
            # A renderer that fails half-way would seem to remove all rules, which is not reviewed as a gain.
            of_base = f"{base.name} has {plural(len(base.image.acls), 'rule')}"
            raise ConfigError(f"{head.name}: {head.output}: wrote no rules, while {of_base}")
        nothing = [each.choice.nothing_read for each in (head, base) if each.choice is not None]
        if nothing[0] is not None and all(nothing) and not (head.unread or base.unread):
            raise ConfigError(nothing[0])
        for broken in _newly_broken(base, head):
            raise ConfigError(f"{broken.file}: {broken.reason}")
        doubts += _unknown_kafka(base, head)
        for each in doubts:
            note(each)
        return ReviewSides(
            base=base,
            head=head,
            changed=frozenset(changed_files(base_ref, head_commit)),
            base_commit=_commit(base_ref),
            head_commit=head_commit,
            doubts=tuple(doubts),
            command=command,
        )

    def _check_var_files(self, base: str, head: str | None) -> None:
        """Refuse a file of variables that neither side has: it is mistyped, and both sides would have defaults.

        Raises:
            ConfigError: there is such a file.

        """
        refs = [ref for ref in (base, head) if ref is not None]
        for name in self.change.inputs.over(self.settings.source.inputs()).var_files:
            try:
                path = path_from_top(name)
            except ConfigError:  # outside of the repository: both sides read it as it is
                continue
            in_tree = head is None and Path(name).exists()
            if not in_tree and not any(exists(GitPlace(ref=ref, path=path)) for ref in refs):
                sides = f"neither in {base} nor in {head or 'the working tree'}"
                raise ConfigError(f"--var-file: {name}: {NO_SUCH_PATH}, {sides}")

    def _command(self, base_ref: str, doubts: list[str]) -> RenderCommand | None:
        """Return the command whose output is the rules; None: they are read from the files."""
        change, own = self.change, self.settings.source.render
        if change.render is not None:
            return parse_command(change.render, path_from_top(os.curdir), change.render_timeout)
        if not change.render_configured:
            return None
        file, directory, commands = configured_commands(self.settings, base_ref)
        text = commands.get(change.cluster)
        if text is not None and text != own:
            doubts.append(f"{file}: {text[:200]!r} was run, that of the base: the change modifies its key render")
        elif text is None and (own is not None or not commands):
            doubts.append(f"{file}: no key render{_of_cluster(change.cluster)}, so files are read as they are")
        return None if text is None else parse_command(text, directory, change.render_timeout)

    @contextmanager
    def _reading_ahead(self, place: GitPlace | None, command: RenderCommand | None) -> Iterator[ChosenSource | None]:
        """Have another process read the files of the head during the `with`; yield their source, None if none is.

        `place`: as _side; None: the working tree.
        """
        if command is not None or not (Path(self.path).exists() if place is None else exists(place)):
            yield None
            return
        choice = choose_source(self._selection(acls=self.path) if place is None else self._selection(ref=place.name))
        with reading_ahead(choice):
            yield choice

    def _side(self, place: GitPlace, command: RenderCommand | None, choice: ChosenSource | None = None) -> Side:
        """Return the side of a commit; `choice`: its source, if it is being read already."""
        commit = _commit(place.ref)
        name = place.ref if commit.startswith(place.ref) else f"{place.ref} ({commit[:_SHORT]})"
        if choice is None and not exists(place):
            return _without_rules(name, self.settings.authorizer)
        if command is not None:
            return self._rendered(name, command, place.ref)
        return self._read(name, choice or choose_source(self._selection(ref=place.name)), place.ref)

    def _rendered(self, name: str, command: RenderCommand, ref: str | None) -> Side:
        rendered = render(command, ref, name)
        side = self._read(name, choose_source(self._selection(rendered=rendered)), ref)
        if rendered.warning is not None:
            note(printable(f"{name}: {command.text}: {rendered.warning}"))
        return evolve(side, rendered=rendered)

    def _working_tree(self, command: RenderCommand | None, choice: ChosenSource | None) -> Side:
        if not Path(self.path).exists():
            return _without_rules("the working tree", self.settings.authorizer)
        if command is not None:
            return self._rendered("the working tree", command, None)
        # Its directory is empty in a clone without submodules: a review of no files would pass.
        for each in submodules(path_from_top(self.path)):
            raise ConfigError(f"{each}: a submodule: its files are in another repository")
        return self._read("the working tree", choice or choose_source(self._selection(acls=self.path)), None)

    def _selection(
        self, *, ref: str | None = None, acls: str | None = None, rendered: Rendered | None = None
    ) -> SourceSelection:
        source, form = self.settings.source, self.change.form
        if form is None and self.change.path is None and source.format is not None:  # it is that of source.acls
            form = AclsFormat(source.format)
        of_settings = (text.rpartition("=") for text in source.modules)
        return SourceSelection(
            acls=acls,
            ref=ref,
            rendered=rendered,
            form=form or AclsFormat.AUTO,
            modules={**{name: directory for name, _, directory in of_settings}, **self.change.modules},
            exclude=(*source.exclude, *self.change.exclude),
            accept_unread=parse_accepted((*source.accept_unread, *self.change.accept_unread)),
            inputs=self.change.inputs.over(source.inputs()),
            topics=self.topics,
            may_be_empty=True,
            notes_clusters=False,
        )

    def _read(self, name: str, choice: ChosenSource, ref: str | None) -> Side:
        image = choice.image()
        return Side(name=name, ref=ref, choice=choice, image=image, authorizer=self.settings.authorizer)


def configured_commands(settings: RepositorySettings, base_ref: str) -> tuple[str, str, Mapping[str, str]]:
    """Return the name of the settings file of the base, its directory, and its key `render` by cluster.

    The file of the change is not read: a pull request may have written it, and would run what it likes. A file that a
    flag names outside of the repository is no part of a change.

    Raises:
        ConfigError: the file of the base is not TOML, or the key is no text.

    """
    files = list(_settings_files())
    named = files[0] if settings.file is None else _stated_inside(settings.file)
    if named is None:
        commands = {} if settings.document is None else render_commands(settings.document)
        return str(settings.file), path_from_top(os.curdir), commands
    for file in files[files.index(named) :] if named in files else [named]:
        content = file_content(base_ref, file)
        if content is not None:
            display = f"{base_ref}:{file}"
            return display, os.path.dirname(file), render_commands(parse_toml(content, display))  # noqa: PTH120
    return f"{base_ref}:{named}", "", {}


def _stated_inside(file: Path) -> str | None:
    """Return the path of a file from the top of the repository; None if it does not lead through the repository.

    Symbolic links in the repository are not followed: the change may have them.
    """
    top, path = top_directory().resolve(), Path(os.path.normpath(Path.cwd() / file))
    for directory in reversed(path.parents):
        real = directory.resolve()
        if real.is_relative_to(top):
            return (real.relative_to(top) / path.relative_to(directory)).as_posix()
    return None


def _of_cluster(name: str) -> str:
    return f" of the cluster {name}" if name else ""


def _without_rules(name: str, authorizer: StatedSettings) -> Side:
    image = Image()
    return Side(name=name, ref=None, choice=None, image=image, authorizer=authorizer)


def _unknown_kafka(*sides: Side) -> list[str]:
    """Return that it is not known which Kafka decides, if that matters."""
    for side in reversed(sides):
        kafka = deciding_kafka(side.image, side.authorizer.generation)
        if not kafka.is_known:
            return [kafka.ambiguity()]
    return []


def _commit(ref: str) -> str:
    commit = commit_id(ref)
    if commit is None:
        fix, default = way_out(ref, ref), default_branch()
        known = "" if default is None or default in fix else f"; the default branch is {default!r}"
        raise ConfigError(f"{ref}: this clone has no such commit{known}{fix}")
    return commit


def _parted(base: str, head: str, head_name: str) -> tuple[str, list[str]]:
    """Return the commit at which the head parted from the base: what came to the base since is not the head's.

    With it come doubts: the clone may be shallow.
    """
    commit = _commit(base)
    parted = merge_base(commit, head)
    if parted is None:
        doubt = (
            f"{base}: this clone does not have the commit at which {head_name} parted from it (a shallow one?), so "
            "later changes of the base count as reverted: fetch the history, such as with fetch-depth: 0"
        )
        return base, [doubt]
    return base if parted == commit else parted[:_SHORT], []


# Locations as the comment shows them: the file from the top of the repository, with a link to the line at its commit.


@frozen(eq=False, kw_only=True, slots=False)
class PlaceLinks:
    """Returns the locations of rules with their addresses."""

    sides: ReviewSides

    def __call__(self, place: FileOrigin) -> LinkedPlace:
        """Return a location as the comment shows it.

        Of the calls of modules that lead to it, the first one in a changed file comes first, or else the outermost.
        """
        steps = [self._step(each) for each in place.steps]
        first = next((each for each in steps if each.file in self.sides.changed), steps[0])
        return evolve(first, others=tuple(each for each in steps if each is not first))

    def _step(self, place: FileOrigin | ModuleCall) -> LinkedPlace:
        """Return a line; without an address if the site is unknown, or no commit has the line."""
        if place.file in (self.sides.base.output, self.sides.head.output):
            return LinkedPlace(file=place.file, line=place.line)
        commits = {self.sides.base.ref: self.sides.base_commit, self.sides.head.ref: self.sides.head_commit}
        for ref, commit in commits.items():
            if ref is not None and commit is not None and place.file.startswith(f"{ref}:"):
                return self._linked(place.file.removeprefix(f"{ref}:"), place.line, commit)
        try:
            path = self._path(place.file)
        except ConfigError:  # outside of the repository, such as the directory of a module
            return LinkedPlace(file=place.file, line=place.line)
        if self._lines is None:  # then what is committed makes no difference
            return LinkedPlace(file=path, line=place.line)
        return self._linked(path, place.line, None if path in self._uncommitted else self._checked_out)

    def _linked(self, path: str, line: int, commit: str | None) -> LinkedPlace:
        lines = self._lines
        url = None if lines is None or commit is None else lines.address(commit, path, line)
        return LinkedPlace(file=path, line=line, url=url)

    @cached_property
    def _lines(self) -> HostedLines | None:
        return HostedLines.of_repository()

    @cached_property
    def _path(self) -> Callable[[str], str]:
        return cache(partial(path_from_top, top=top_directory()))

    @cached_property
    def _checked_out(self) -> str | None:
        return commit_id("HEAD")

    @cached_property
    def _uncommitted(self) -> set[str]:
        """The files of the working tree that no commit has as they are."""
        return changed_files("HEAD", None)


# What a change does to the checks themselves: the settings, the tests of rules, and what is known of the cluster.


def own_checks(sides: ReviewSides, settings: RepositorySettings) -> Iterator[str]:
    """Yield the files among the checks that the change touches, from the top of the repository, and which it deletes.

    The settings of the base count as well: a change may delete them, or the tests that they name.
    """
    source = settings.source
    files = (settings.file, *settings.test.files, source.topics, source.groups, source.accesses)
    named = {path for each in files if each is not None for path in _inside(str(each))}
    of_settings = {*named, *_settings_files()} if settings.file is None else named
    patterns = {each for file in of_settings & sides.changed for each in _tests_of(sides, file)}
    if settings.document is not None and settings.file is not None:
        patterns |= {each for path in _inside(str(settings.file)) for each in _patterns(settings.document.values, path)}
    for file in sorted(sides.changed):
        if file in of_settings or any(fnmatchcase(file, pattern) for pattern in patterns):
            yield file if sides.head_has(file) else f"{file} (deleted)"


def _inside(file: str) -> Iterator[str]:
    try:
        yield path_from_top(file)
    except ConfigError:  # it is not in the repository
        return


def _settings_files() -> Iterator[str]:
    """Yield where an aclog.toml would be the settings of the working directory, from the top of the repository."""
    here, top = Path.cwd().resolve(), top_directory().resolve()
    for directory in (here, *here.parents):
        if directory.is_relative_to(top):
            yield (directory / SETTINGS_FILE).relative_to(top).as_posix()


def _tests_of(sides: ReviewSides, file: str) -> Iterator[str]:
    """Yield the names and globs of the tests that a file of settings names in the base, if it is one."""
    content = file_content(sides.base_commit, file) if os.path.splitext(file)[1] == ".toml" else None  # noqa: PTH122
    try:
        yield from _patterns(tomllib.loads((content or b"").decode()), file)
    except (ValueError, RecursionError):  # the old content is reported: it is a change of the settings
        return


def _patterns(values: dict[str, object], file: str) -> Iterator[str]:
    """Yield the paths of `test.files`, from the top of the repository."""
    table = values.get("test")
    texts = table.get("files") if isinstance(table, dict) else None
    for text in texts if isinstance(texts, list) else ():
        yield os.path.normpath(os.path.join(os.path.dirname(file), str(text)))  # noqa: PTH118, PTH120


# What was not read of both sides, and may hold rules.


def _newly_broken(base: Side, head: Side) -> Iterator[Unread]:
    """Yield the root modules of Terraform with an error that only the head has: their rules would seem revoked."""
    old = {base.without_ref(each.reason) for each in base.unread}
    for each in head.unread:
        if each.kind is UnreadKind.BROKEN and each.name and head.without_ref(each.reason) not in old:
            yield each


def unread_items(sides: ReviewSides) -> list[UnreadItem]:
    """Return the content of either side that was not read, what the change touches first; each object once.

    What only one side has also counts as changed: git lists no submodule of a work tree, nor a file that it ignores.
    """
    head, base = (
        {(side.placement.path_of(each.file), each.label, side.without_ref(each.reason)): each for each in side.unread}
        for side in (sides.head, sides.base)
    )
    items = []
    for key, each in {**base, **head}.items():
        is_changed = key[0] in sides.changed or key not in head or key not in base
        item = Item(text=each.text(), origin=each.origin)
        items.append(UnreadItem(label=each.label, item=item, is_changed=is_changed))
    return [*_dormant_items(sides), *sorted(items, key=lambda each: not each.is_changed)]


def _dormant_items(sides: ReviewSides) -> Iterator[UnreadItem]:
    """Yield statements that change, and that make no rules by the values that were read."""
    base, head = (
        {(side.placement.path_of(each.unread.file), each.address): each for each in side.dormant}
        for side in (sides.base, sides.head)
    )
    for key, each in {**base, **head}.items():
        if key not in base or key not in head or base[key].content != head[key].content:
            item = Item(text=each.unread.text(), origin=each.unread.origin)
            yield UnreadItem(label=each.unread.label, item=item, is_changed=True)
