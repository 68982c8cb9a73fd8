"""Reads aclog.toml: the settings of a repository for `aclog lint`, `test` and `review`; flags win over them.

A stranger may have written the file, in a pull request: what it names lies in its repository, or nothing is read.
"""

from pathlib import Path

from attrs import frozen

from aclog.analysis.lint.catalogue import parse_lints
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.file_tree import Destination, destination
from aclog.sources.formats.format import AclsFormat
from aclog.sources.repository.discovery import find_settings_file, repository_root, shown_path
from aclog.sources.repository.kafka_version import ranges_of
from aclog.sources.repository.settings import (
    FAIL_ON,
    SEMANTICS,
    AuthorizerSettings,
    LintSettings,
    RepositorySettings,
    ReviewSettings,
    SourceSettings,
    TestSettings,
)
from aclog.sources.repository.suppression_tables import IGNORE, suppressions_of
from aclog.sources.repository.toml_document import TomlDocument, read_toml
from aclog.sources.repository.toml_table import TomlTable
from aclog.terminal.notices import note

_SOURCE = ("acls", "format", "modules", "topics", "groups", "accesses")
_AUTHORIZER = ("super-users", "allow-everyone-if-no-acl-found", "semantics", "kafka-version", "cidr")
_LINT = ("broker-version", "broker-principals", "separators", "principal-types", "select", "fail-on", IGNORE)
_TEST = ("files", "min-coverage")
_REVIEW = ("fail-on", "untouched")


def load_repository_settings(config: Path | None = None) -> RepositorySettings:
    """Return the settings of a file, or of the aclog.toml of the working directory's repository; a note says which.

    Empty ones if there is none. Paths in the file are relative to it, and those of a file that was not named lead to
    no other place than its repository.

    Raises:
        ConfigError: not TOML, an unknown key, or a value of another type, or a path that leads out, with file, line and
            key.
        OSError: the file cannot be read.

    """
    found = find_settings_file(Path.cwd()) if config is None else config
    if found is None:
        return RepositorySettings()
    shown = shown_path(found) if config is None else config
    root = repository_root(Path.cwd()) if config is None else None
    settings = settings_of(read_toml(found, str(shown)), shown, root)
    note(f"settings are those of {shown}")
    return settings


def settings_of(document: TomlDocument, file: Path, repository: Path | None = None) -> RepositorySettings:
    """Return what the text of an aclog.toml says. Raises ConfigError as load_repository_settings.

    `repository`: the root of the repository that its paths must not lead out of; None: they may.
    """
    root = TomlTable(document=document, values=document.values)
    paths = _Paths(directory=file.parent, repository=repository)
    root.only(("source", "authorizer", "lint", "test", "review"))
    return RepositorySettings(
        file=file,
        source=_source(root.table("source"), paths),
        authorizer=_authorizer(root.table("authorizer")),
        lint=_lint(root.table("lint")),
        test=_test(root.table("test"), paths),
        review=_review(root.table("review")),
        document=document,
    )


@frozen(kw_only=True)
class _Paths:
    """What a file's paths are relative to, and what they must not lead out of."""

    directory: Path
    repository: Path | None

    def joined(self, table: TomlTable, key: str, path: str) -> str:
        """Return a path from the working directory. Raises ConfigError: it leads out of the repository, or to .git."""
        found = self.directory / path
        if self.repository is not None:
            leads = destination(found, self.repository)
            if leads is not Destination.INSIDE:
                where = "into .git" if leads is Destination.GIT else "out of the repository"
                raise table.error(
                    key,
                    f"{path[:200]!r} leads {where}: a pull request may have written this: give it as a flag, or "
                    "name the file with --config",
                )
        return str(found)


def _source(table: TomlTable, paths: _Paths) -> SourceSettings:
    table.only(_SOURCE)
    modules = table.mapping("modules")
    return SourceSettings(
        acls=_path(table, "acls", paths),
        format=table.choice("format", tuple(AclsFormat)),
        modules=tuple(f"{source}={paths.joined(table, 'modules', path)}" for source, path in modules.items()),
        topics=_path(table, "topics", paths),
        groups=_path(table, "groups", paths),
        accesses=_path(table, "accesses", paths),
    )


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
    return LintSettings(
        broker_version=table.text("broker-version"),
        broker_principals=table.texts("broker-principals"),
        separators=table.text("separators"),
        principal_types=table.texts("principal-types"),
        select=_select(table),
        fail_on=table.choice("fail-on", FAIL_ON),
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
    return ReviewSettings(fail_on=table.texts("fail-on"), untouched=table.texts("untouched"))


def _files(table: TomlTable, text: str, paths: _Paths) -> list[str]:
    """Return the files that a path or a glob names; a glob that names none is refused, a path is read later."""
    if not set(text) & set("*?["):
        return [paths.joined(table, "files", text)]
    if text.count("**") > 1:
        raise table.error("files", f"{text[:80]!r}: more than one **, which takes too long: expected one at most")
    if Path(text).is_absolute():
        raise table.error("files", f"{text[:80]!r}: expected a glob relative to this file")
    try:
        found = sorted(path for path in paths.directory.glob(text) if path.is_file())
    except ValueError as error:
        raise table.error("files", f"{text[:80]!r} is no glob: {error}") from error
    if not found:
        raise table.error("files", f"no file matches {text[:80]!r}")
    return [paths.joined(table, "files", str(path.relative_to(paths.directory))) for path in found]


def _path(table: TomlTable, key: str, paths: _Paths) -> str | None:
    text = table.text(key)
    if text == "":
        raise table.error(key, "expected a path, not an empty string")
    return None if text is None else paths.joined(table, key, text)
