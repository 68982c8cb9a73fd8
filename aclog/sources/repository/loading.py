"""Reads aclog.toml: the settings of a repository for `aclog lint`, `test` and `review`; flags win over them."""

from pathlib import Path

from aclog.analysis.lint.catalogue import parse_lints
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.format import AclsFormat
from aclog.sources.repository.discovery import find_settings_file, shown_path
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

    Empty ones if there is none. Paths in the file are relative to it.

    Raises:
        ConfigError: not TOML, an unknown key, or a value of another type, with file, line and key.
        OSError: the file cannot be read.

    """
    found = find_settings_file(Path.cwd()) if config is None else config
    if found is None:
        return RepositorySettings()
    shown = shown_path(found) if config is None else config
    settings = settings_of(read_toml(found, str(shown)), shown)
    note(f"settings are those of {shown}")
    return settings


def settings_of(document: TomlDocument, file: Path) -> RepositorySettings:
    """Return what the text of an aclog.toml says. Raises ConfigError as load_repository_settings."""
    root = TomlTable(document=document, values=document.values)
    root.only(("source", "authorizer", "lint", "test", "review"))
    return RepositorySettings(
        file=file,
        source=_source(root.table("source"), file.parent),
        authorizer=_authorizer(root.table("authorizer")),
        lint=_lint(root.table("lint")),
        test=_test(root.table("test"), file.parent),
        review=_review(root.table("review")),
        document=document,
    )


def _source(table: TomlTable, directory: Path) -> SourceSettings:
    table.only(_SOURCE)
    modules = table.mapping("modules")
    return SourceSettings(
        acls=_path(table, "acls", directory),
        format=table.choice("format", tuple(AclsFormat)),
        modules=tuple(f"{source}={_joined(directory, path)}" for source, path in modules.items()),
        topics=_path(table, "topics", directory),
        groups=_path(table, "groups", directory),
        accesses=_path(table, "accesses", directory),
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


def _test(table: TomlTable, directory: Path) -> TestSettings:
    table.only(_TEST)
    return TestSettings(
        files=tuple(path for text in table.texts("files") or () for path in _files(table, text, directory)),
        min_coverage=table.number("min-coverage", least=0, most=100),
    )


def _review(table: TomlTable) -> ReviewSettings:
    table.only(_REVIEW)
    return ReviewSettings(fail_on=table.texts("fail-on"), untouched=table.texts("untouched"))


def _files(table: TomlTable, text: str, directory: Path) -> list[str]:
    """Return the files that a path or a glob names; a glob that names none is refused, a path is read later."""
    if not set(text) & set("*?["):
        return [_joined(directory, text)]
    if Path(text).is_absolute():
        raise table.error("files", f"{text[:80]!r}: expected a glob relative to this file")
    try:
        found = sorted(str(path) for path in directory.glob(text) if path.is_file())
    except ValueError as error:
        raise table.error("files", f"{text[:80]!r} is no glob: {error}") from error
    if not found:
        raise table.error("files", f"no file matches {text[:80]!r}")
    return found


def _path(table: TomlTable, key: str, directory: Path) -> str | None:
    text = table.text(key)
    if text == "":
        raise table.error(key, "expected a path, not an empty string")
    return None if text is None else _joined(directory, text)


def _joined(directory: Path, path: str) -> str:
    return str(directory / path)
