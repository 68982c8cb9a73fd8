"""The settings of a repository of ACLs: aclog.toml, and suppressions."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Self

from attrs import evolve, field, fields

from aclog.analysis.lint_report import RULE_FIELDS, Suppression, parse_lints
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG, Generation
from aclog.metalog.errors import NO_SUCH_PATH, ConfigError
from aclog.metalog.values import frozen
from aclog.sources.acl_lines import STDIN
from aclog.sources.choice import AclsSource, parse_accepted, parse_values
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.rule import Destination, DirectoryTree, FileTree, destination, repository_root
from aclog.sources.git import GitTree, parse_git_place
from aclog.sources.read_options import ModuleInputs
from aclog.sources.toml import TomlDocument, TomlTable, ranges_of, read_toml
from aclog.terminal.output import note
from aclog.usage.accesses.globs import unlistable

# Where the settings of a repository are: aclog.toml, above the working directory, up to the repository's root.


SETTINGS_FILE = "aclog.toml"


def find_settings_file(start: Path) -> Path | None:
    """Return the nearest aclog.toml in a directory or above it, but none above the root of its repository.

    Outside a repository only the directory itself is searched: a file above it may belong to another user.

    Raises:
        ConfigError: it is a symbolic link to a file elsewhere.

    """
    start = start.absolute()
    root = repository_root(start) or start
    for directory in (start, *start.parents):
        path = directory / SETTINGS_FILE
        if path.is_file():
            if not path.resolve().is_relative_to(root.resolve()):
                raise ConfigError(f"{shown_path(path)}: a symbolic link out of the repository: expected a file")
            return path
        if directory == root:
            return None
    return None


def shown_path(path: Path) -> Path:
    """Return a path as the working directory needs it: relative to it, as short as can be."""
    return Path(os.path.relpath(path))


# The settings of a repository of rules, as values: the content of aclog.toml; None, or nothing, where it has none.


FAIL_ON = ("error", "warning", "never")
"""The lowest severity of a finding that makes a command fail."""
_UNREAD = "unread"
SEMANTICS = ("kafka", "documented")


def parse_fail_on(words: Iterable[str]) -> tuple[str | None, bool]:
    """Return the severity, None if no word is one, and whether unread content makes a command fail.

    Raises:
        ConfigError: an unknown word, or two severities.

    """
    words = list(dict.fromkeys(words))
    severities = [each for each in words if each != _UNREAD]
    unknown = [each for each in severities if each not in FAIL_ON]
    if unknown:
        raise ConfigError(f"--fail-on {unknown[0][:40]!r} is not one of {', '.join(FAIL_ON)}, or {_UNREAD}")
    if severities[1:]:
        raise ConfigError(f"--fail-on {','.join(severities)!r}: expected one of {', '.join(FAIL_ON)}")
    return (severities[0] if severities else None), _UNREAD in words


@frozen(kw_only=True)
class SourceSettings:
    """The paths of the rules, and further data on the cluster; paths are relative to the working directory."""

    acls: str | None = None
    format: str | None = None
    modules: tuple[str, ...] = ()
    """SOURCE=DIR, as for `--module`."""
    exclude: tuple[str, ...] = ()
    """Globs of files that are not read."""
    accept_unread: tuple[str, ...] = ()
    """Content that may stay unread, as for `--accept-unread`."""
    var_files: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    """NAME=VALUE, as for `--var`."""
    workspace: str | None = None
    topics: str | None = None
    groups: str | None = None
    accesses: str | None = None
    render: str | None = None
    """A command whose output is the rules; it runs on request only, as the base of a review has it."""
    table: tuple[str, ...] = field(default=(), eq=False)
    """The keys that lead to these settings: `source`, or `clusters` and a name."""

    def inputs(self) -> ModuleInputs:
        """Return what the root modules of Terraform get."""
        return ModuleInputs(var_files=self.var_files, values=parse_values(self.variables), workspace=self.workspace)


@frozen(kw_only=True)
class AuthorizerSettings:
    """The settings of the authorizer."""

    super_users: str | None = None
    """The broker's super.users, separated by semicolons."""
    allow_everyone: bool | None = None
    semantics: str | None = None
    cidr: bool | None = None

    @property
    def documented(self) -> bool:
        """Whether decisions follow Kafka's documentation instead of Kafka 4.3.1."""
        return self.semantics == "documented"

    @property
    def generation(self) -> Generation | None:
        """The generation of the Kafka that decides; None if nothing states it."""
        return None if self.cidr is None else Generation.V4_4 if self.cidr else Generation.V4_3

    def configs(self) -> frozenset[str]:
        """Return the properties of brokers whose values are stated."""
        values = {SUPER_USERS_CONFIG: self.super_users, ALLOW_EVERYONE_CONFIG: self.allow_everyone}
        return frozenset(name for name, value in values.items() if value is not None)

    def of_generation(self, generation: Generation) -> Self:
        """Return the same for a Kafka of this generation."""
        return evolve(self, cidr=generation.has_ranges)


@frozen(kw_only=True)
class LintSettings:
    """How to lint."""

    broker_version: str | None = None
    broker_principals: tuple[str, ...] | None = None
    separators: str | None = None
    principal_types: tuple[str, ...] | None = None
    select: tuple[str, ...] | None = None
    fail_on: str | None = None
    """The lowest severity of a finding that makes a command fail."""
    fail_on_unread: bool = False
    """Whether unread content does."""
    ignore: tuple[Suppression, ...] = ()


@frozen(kw_only=True)
class TestSettings:
    """Which tests to run."""

    __test__ = False
    """Not a test class for pytest."""

    files: tuple[str, ...] = ()
    min_coverage: float | None = None
    """In percent."""


@frozen(kw_only=True)
class ReviewSettings:
    """The conditions that make a review fail; the words are those of `aclog review --fail-on`."""

    fail_on: tuple[str, ...] | None = None
    untouched: tuple[str, ...] | None = None
    """Resources on which nothing may change, as tests of rules write them: `topic:pii.*`."""
    no_gain: tuple[str, ...] | None = None
    """Resources on which no denied request may become allowed, written in the same way."""


@frozen(kw_only=True)
class RepositorySettings:
    """All settings; those of no file are empty."""

    file: Path | None = None
    source: SourceSettings = field(factory=SourceSettings)
    clusters: Mapping[str, SourceSettings] = field(factory=dict)
    """The rules of each cluster, by its name, if there are several."""
    authorizer: AuthorizerSettings = field(factory=AuthorizerSettings)
    lint: LintSettings = field(factory=LintSettings)
    test: TestSettings = field(factory=TestSettings)
    review: ReviewSettings = field(factory=ReviewSettings)
    document: TomlDocument | None = field(default=None, repr=False)

    def by_cluster(self) -> "dict[str, RepositorySettings]":
        """Return each cluster's settings by its name, or these under an empty name if there are no clusters.

        What the table of a cluster does not state is that of `source`.
        """
        settings = {}
        for name, source in self.clusters.items():
            stated = {each.name: value for each in fields(SourceSettings) if (value := getattr(source, each.name))}
            settings[name] = evolve(self, source=evolve(self.source, **stated), clusters={})
        return settings or {"": self}

    def existing_acls(self) -> str | None:
        """Return the path of the rules, if one is named. Raises ConfigError: it does not exist, with file and line."""
        acls = self.source.acls
        if acls is not None and not Path(acls).exists():
            raise self.error(*self.source.table, "acls", what=f"{acls}: {NO_SUCH_PATH}")
        return acls

    def error(self, *keys: str, what: str) -> ConfigError:
        """Return an error about a setting, for checks in commands: file, line, key, and the problem."""
        if self.document is None:
            return ConfigError(f"{'.'.join(keys)}: {what}")
        return self.document.error(keys, what)


# Suppressions as comments in files of rules: `# aclog: ignore 08 kept for old clients until 2027-01-31`.


_MARK = b"aclog: ignore"
_COMMENT = re.compile(r".*?(?:#|//)\s*aclog: ignore(?P<stated>\s.*|)$")
_DIRECTIVE = re.compile(
    r"\s+(?P<lints>[\w-]+(?:\s*,\s*[\w-]+)*)(?P<reason>.*?)(?:\s+until\s+(?P<until>\d{4}-\d\d-\d\d))?\s*(?:\*/)?\s*"
)
_MOST, _LONGEST = 1000, 2000
"""Comments in a file, and characters of a line with one: a file may be untrusted."""


def inline_suppressions(source: AclsSource) -> Iterator[Suppression]:
    """Yield those in the files of a source.

    Each is about the rules of its own line, or if it stands alone, of the next one that is neither blank nor a comment;
    and of the lines after that one which are indented deeper, such as the body of a block.

    Raises:
        ConfigError: one without a lint or without a reason, with file and line; OSError: a file cannot be read.

    """
    if source.rendered is not None:
        return  # its lines are not those of the files in which its rules are
    if source.is_ref:
        with GitTree(place=parse_git_place(source.path)) as tree:
            yield from _of_tree(tree, source.own_paths)
    elif source.path != STDIN:
        yield from _of_tree(DirectoryTree(source.path), source.own_paths)


def _of_tree(tree: FileTree, paths: frozenset[str] | None) -> Iterator[Suppression]:
    for path in tree.paths() if paths is None else sorted(paths):
        try:
            content = tree.read(path)
        except ConfigError:  # without content, or a pointer to it: the reader of rules reports it
            continue
        if _MARK in content:
            yield from _of_text(content.decode(errors="replace"), tree.display(path))


def _of_text(text: str, file: str) -> Iterator[Suppression]:
    lines = [line.rstrip("\r") for line in text.split("\n")]
    depths = [_depth(line) for line in lines]
    count = 0
    for at, line in enumerate(lines):
        comment = _comment(line, f"{file}:{at + 1}")
        if comment is None:
            continue
        count += 1
        if count > _MOST:
            raise ConfigError(f"{file}:{at + 1}: more than {_MOST:,} comments `aclog: ignore` in one file")
        first = _next_statement(depths, at)
        yield _suppression(comment["stated"], file, at + 1, (first + 1, _last(depths, first) + 1))


def _comment(line: str, where: str) -> re.Match[str] | None:
    if "aclog: ignore" not in line:
        return None
    if len(line) > _LONGEST:
        raise ConfigError(f"{where}: aclog: ignore in a line longer than {_LONGEST:,} characters")
    return _COMMENT.fullmatch(line)


def _depth(line: str) -> int | None:
    """Return how deep a line is indented; None if it is blank, or a comment alone."""
    stripped = line.lstrip()
    return None if not stripped or stripped.startswith(("#", "//")) else len(line) - len(stripped)


def _next_statement(depths: Sequence[int | None], at: int) -> int:
    """Return the first line from one on that is neither blank nor a comment; the last line without one."""
    return next((each for each in range(at, len(depths)) if depths[each] is not None), len(depths) - 1)


def _last(depths: Sequence[int | None], first: int) -> int:
    """Return the last line of a statement: of those after its first that are indented deeper."""
    depth, last = depths[first] or 0, first
    for at in range(first + 1, len(depths)):
        indent = depths[at]
        if indent is not None:
            if indent <= depth:
                break
            last = at
    return last


def _suppression(text: str, file: str, number: int, about: tuple[int, int]) -> Suppression:
    where = f"{file}:{number}"
    match = _DIRECTIVE.fullmatch(text)
    if match is None:
        raise ConfigError(f"{where}: expected `aclog: ignore ID[,ID...] REASON [until YYYY-MM-DD]`")
    reason = match["reason"].strip(" \t:-")
    if not reason:
        raise ConfigError(f"{where}: aclog: ignore: expected a reason after the lint: why this finding is accepted")
    try:
        lints = parse_lints(match["lints"].split(","))
        expires = None if match["until"] is None else date.fromisoformat(match["until"])
    except (ConfigError, ValueError) as error:
        raise ConfigError(f"{where}: aclog: ignore: {error}") from error
    return Suppression(lints=lints, lines=(file, *about), reason=reason, expires=expires, where=where)


# Suppressions as tables of TOML: `[[ignore]]` of a file of its own, `[[lint.ignore]]` of aclog.toml.


IGNORE = "ignore"
_KEYS = ("lint", *RULE_FIELDS, "file", "reason", "expires")


def read_suppressions(path: Path) -> tuple[Suppression, ...]:
    """Return the suppressions of a file of `[[ignore]]` tables.

    Raises:
        ConfigError: not TOML, an unknown key, or a suppression without lint or reason, with the line; OSError.

    """
    document = read_toml(path)
    table = TomlTable(document=document, values=document.values)
    table.only((IGNORE,))
    return tuple(suppressions_of(table))


def suppressions_of(table: TomlTable) -> Iterator[Suppression]:
    """Yield the suppressions in the array `ignore` of a table. Raises ConfigError as read_suppressions."""
    return map(_table_suppression, table.tables(IGNORE))


def _table_suppression(table: TomlTable) -> Suppression:
    table.only(_KEYS)
    where = table.document.place(table.path)
    lints = table.texts("lint")
    if not lints:
        raise table.document.error(table.path, 'expected the key lint with an id, such as "08", or an array of them')
    reason = (table.text("reason") or "").strip()
    if not reason:
        raise table.document.error(table.path, "expected the key reason: why this finding is accepted")
    fields = {key: value for key in RULE_FIELDS if (value := table.text(key)) is not None}
    try:
        ids = parse_lints(lints)
    except ConfigError as error:
        raise table.error("lint", str(error)) from error
    return Suppression(
        lints=ids,
        fields=fields,
        file=table.text("file"),
        reason=reason,
        expires=table.day("expires"),
        where=where,
    )


# Reads aclog.toml: the settings of a repository for `aclog lint`, `test` and `review`; flags win over them.
#
# The file may be untrusted, as part of a pull request: its paths must lie in its repository, or nothing is read.


_SOURCE = (
    "acls",
    "format",
    "modules",
    "exclude",
    "accept-unread",
    "var-files",
    "vars",
    "workspace",
    "topics",
    "groups",
    "accesses",
    "render",
)
_AUTHORIZER = ("super-users", "allow-everyone-if-no-acl-found", "semantics", "kafka-version", "cidr")
_LINT = ("broker-version", "broker-principals", "separators", "principal-types", "select", "fail-on", IGNORE)
_TEST = ("files", "min-coverage")
_REVIEW = ("fail-on", "untouched", "no-gain")


def load_repository_settings(config: Path | None = None) -> RepositorySettings:
    """Return the settings of a file, or of the aclog.toml of the working directory's repository, with a note on which.

    Empty ones without a file. Paths in the file are relative to it, and those of a file that was not named lead to
    no path outside its repository.

    Raises:
        ConfigError: not TOML, an unknown key, or a value of another type, or a path that leads out, with file, line and
            key.
        OSError: the file cannot be read.

    """
    path = find_settings_file(Path.cwd()) if config is None else config
    if path is None:
        return RepositorySettings()
    display = shown_path(path) if config is None else config
    root = repository_root(Path.cwd()) if config is None else None
    settings = settings_of(read_toml(path, str(display)), display, root)
    note(f"settings are those of {display}")
    return settings


def settings_of(document: TomlDocument, file: Path, repository: Path | None = None) -> RepositorySettings:
    """Parse the text of an aclog.toml. Raises ConfigError as load_repository_settings.

    `repository`: the root of the repository that its paths must not lead out of; None: they may.
    """
    root = TomlTable(document=document, values=document.values)
    paths = _Paths(directory=file.parent, repository=repository)
    root.only(("source", "clusters", "authorizer", "lint", "test", "review"))
    render_commands(document)
    return RepositorySettings(
        file=file,
        source=_source(root.table("source"), paths),
        clusters=_clusters(root.table("clusters"), paths),
        authorizer=_authorizer(root.table("authorizer")),
        lint=_lint(root.table("lint")),
        test=_test(root.table("test"), paths),
        review=_review(root.table("review")),
        document=document,
    )


@frozen(kw_only=True)
class _Paths:
    """The base of a file's paths, and the boundary that they must not leave."""

    directory: Path
    repository: Path | None

    def joined(self, table: TomlTable, key: str, path: str) -> str:
        """Return a path from the working directory. Raises ConfigError: it leads out of the repository, or to .git."""
        target = self.directory / path
        if self.repository is not None:
            leads = destination(target, self.repository)
            if leads is not Destination.INSIDE:
                where = "into .git" if leads is Destination.GIT else "out of the repository"
                raise table.error(
                    key,
                    f"{path[:200]!r} leads {where}: a pull request may have written this: give it as a flag, or "
                    "name the file with --config",
                )
        return str(target)


def _source(table: TomlTable, paths: _Paths) -> SourceSettings:
    table.only(_SOURCE)
    modules = table.mapping("modules")
    return SourceSettings(
        acls=_path(table, "acls", paths),
        table=tuple(map(str, table.path)),
        format=table.choice("format", tuple(AclsFormat)),
        modules=tuple(f"{source}={paths.joined(table, 'modules', path)}" for source, path in modules.items()),
        exclude=table.texts("exclude") or (),
        accept_unread=_accepted(table),
        var_files=tuple(paths.joined(table, "var-files", path) for path in table.texts("var-files") or ()),
        variables=tuple(f"{name}={value}" for name, value in table.mapping("vars").items()),
        workspace=table.text("workspace"),
        topics=_path(table, "topics", paths),
        groups=_path(table, "groups", paths),
        accesses=_path(table, "accesses", paths),
        render=table.text("render"),
    )


def _clusters(table: TomlTable, paths: _Paths) -> dict[str, SourceSettings]:
    clusters = {name: _source(table.table(name), paths) for name in table.values}
    for name, source in clusters.items():
        if source.acls is None:
            raise table.error(name, "expected the key acls: the file or directory with the rules of this cluster")
    return clusters


def render_commands(document: TomlDocument) -> dict[str, str]:
    """Return the key `render` of each cluster by its name, of `source` by an empty name, from an aclog.toml.

    No other key is read: the file may be that of another commit, whose other files are not here.

    Raises:
        ConfigError: a value that is no text; that of `source` with several clusters, which would have equal rules.

    """
    root = TomlTable(document=document, values=document.values)
    source, clusters = root.table("source"), root.table("clusters")
    commands = {"": source.text("render"), **{name: clusters.table(name).text("render") for name in clusters.values}}
    if commands[""] is not None and clusters.values:
        raise source.error("render", "the clusters would have the same rules: expected render in their own tables")
    return {name: command for name, command in commands.items() if command is not None}


def _accepted(table: TomlTable) -> tuple[str, ...]:
    texts = table.texts("accept-unread") or ()
    try:
        parse_accepted(texts)
    except ConfigError as error:
        raise table.error("accept-unread", str(error).removeprefix("--accept-unread ")) from error
    return texts


def _authorizer(table: TomlTable) -> AuthorizerSettings:
    table.only(_AUTHORIZER)
    users = table.texts("super-users")
    return AuthorizerSettings(
        super_users=None if users is None else ";".join(users),
        allow_everyone=table.flag("allow-everyone-if-no-acl-found"),
        semantics=table.choice("semantics", SEMANTICS),
        cidr=ranges_of(table),
    )


def _lint(table: TomlTable) -> LintSettings:
    table.only(_LINT)
    try:
        fail_on, unread = parse_fail_on(table.texts("fail-on") or ())
    except ConfigError as error:
        raise table.error("fail-on", str(error).removeprefix("--fail-on ")) from error
    return LintSettings(
        broker_version=table.text("broker-version"),
        broker_principals=table.texts("broker-principals"),
        separators=table.text("separators"),
        principal_types=table.texts("principal-types"),
        select=_select(table),
        fail_on=fail_on,
        fail_on_unread=unread,
        ignore=tuple(suppressions_of(table)),
    )


def _select(table: TomlTable) -> tuple[str, ...] | None:
    texts = table.texts("select")
    try:
        return None if texts is None else tuple(sorted(parse_lints(texts)))
    except ConfigError as error:
        raise table.error("select", str(error)) from error


def _test(table: TomlTable, paths: _Paths) -> TestSettings:
    table.only(_TEST)
    return TestSettings(
        files=tuple(path for text in table.texts("files") or () for path in _files(table, text, paths)),
        min_coverage=table.number("min-coverage", least=0, most=100),
    )


def _review(table: TomlTable) -> ReviewSettings:
    table.only(_REVIEW)
    return ReviewSettings(
        fail_on=table.texts("fail-on"), untouched=table.texts("untouched"), no_gain=table.texts("no-gain")
    )


def _files(table: TomlTable, text: str, paths: _Paths) -> list[str]:
    """Return the files that a path or a glob names; a glob that names none is refused, a path is read later."""
    if not set(text) & set("*?["):
        return [paths.joined(table, "files", text)]
    if text.count("**") > 1:
        raise table.error("files", f"{text[:80]!r}: more than one **, which takes too long: expected one at most")
    if Path(text).is_absolute():
        raise table.error("files", f"{text[:80]!r}: expected a glob relative to this file")
    try:
        closed = next(unlistable(str(paths.directory / text)), None)
        matches = sorted(path for path in paths.directory.glob(text) if path.is_file())
    except ValueError as error:
        raise table.error("files", f"{text[:80]!r} is no glob: {error}") from error
    if closed is not None:
        raise table.error("files", f"{text[:80]!r}: {closed.filename}: {closed.strerror}: tests may be in it")
    if not matches:
        raise table.error("files", f"no file matches {text[:80]!r}")
    return [paths.joined(table, "files", str(path.relative_to(paths.directory))) for path in matches]


def _path(table: TomlTable, key: str, paths: _Paths) -> str | None:
    text = table.text(key)
    if text == "":
        raise table.error(key, "expected a path, not an empty string")
    return None if text is None else paths.joined(table, key, text)
