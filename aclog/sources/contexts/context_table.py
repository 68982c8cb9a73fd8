"""One table of the file of contexts: `[contexts.prod]`."""

from collections.abc import Iterable
from pathlib import Path

from aclog.metalog.errors import ConfigError
from aclog.sources.contexts.context import KINDS, Context
from aclog.sources.formats.format import AclsFormat
from aclog.sources.repository.kafka_version import RANGES, VERSION, ranges_of
from aclog.sources.repository.toml_table import TomlTable
from aclog.terminal.output_format import OutputFormat

_FILES = frozenset(("log", "snapshot", "acls"))
_BY_KIND = {
    "acls-format": ("acls", "ref"),
    "modules": ("acls", "ref"),
    "command-config": ("bootstrap-controller", "bootstrap-server"),
    "zookeeper-config": ("zookeeper",),
}
"""Keys that mean something to some kinds only."""
_DECIDING = ("super-users", "allow-everyone-if-no-acl-found", "semantics", VERSION, RANGES)
KEYS = (*KINDS, *_BY_KIND, "topics", *_DECIDING, "timezone", "format")
"""All keys of a context."""
_CLIENT = ("security", "sasl", "ssl", "properties")
"""First parts of client properties, which people may expect here."""
_SEMANTICS = ("kafka", "documented")


def read_context(table: TomlTable, name: str, directory: Path) -> Context:
    """Return the context in a table; paths in it begin at `directory`, that of the file.

    Raises:
        ConfigError: not exactly one source, an unknown key, a value that fits none, client properties that belong into
            a file of their own; with file and line.

    """
    _check_keys(table, name)
    kind = _kind(table, name)
    modules = table.mapping("modules")
    return Context(
        name=name,
        kind=kind,
        value=_value(table, kind, directory),
        acls_format=table.choice("acls-format", tuple(AclsFormat)),
        modules={source: str(directory / Path(path).expanduser()) for source, path in modules.items()},
        topics=None if (topics := _path(table, "topics", directory)) is None else str(topics),
        command_config=_path(table, "command-config", directory),
        zookeeper_config=_path(table, "zookeeper-config", directory),
        super_users=_joined(table.texts("super-users"), ";"),
        allow_everyone=table.flag("allow-everyone-if-no-acl-found"),
        semantics=table.choice("semantics", _SEMANTICS),
        kafka_version=table.text(VERSION),
        cidr=ranges_of(table),
        timezone=table.text("timezone"),
        format=table.choice("format", tuple(OutputFormat)),
        place=table.document.place(table.path),
    )


def _check_keys(table: TomlTable, name: str) -> None:
    for key in table.values:
        if key not in KEYS and key.partition(".")[0] in _CLIENT:
            raise ConfigError(
                f"{table.document.place((*table.path, key))}: {key[:80]!r} of context {name}: client properties stand "
                "in a file with its own permissions: expected command-config = FILE"
            )
    table.only(KEYS)


def _kind(table: TomlTable, name: str) -> str:
    given = [key for key in KINDS if key in table.values]
    if len(given) != 1:
        found = " and ".join(given) or "no source"
        where = table.document.place((*table.path, given[1]) if given else table.path)
        raise ConfigError(f"{where}: context {name} has {found}: expected exactly one of {', '.join(KINDS)}")
    (kind,) = given
    for key, kinds in _BY_KIND.items():
        if key in table.values and kind not in kinds:
            raise table.error(key, f"only together with {' or '.join(kinds)}, not {kind}")
    return kind


def _value(table: TomlTable, kind: str, directory: Path) -> str:
    if kind not in _FILES:
        text = table.text(kind)
        if not text or text.startswith("-"):
            raise table.error(kind, "expected servers, or GITREF:PATH" if kind == "ref" else "expected HOST:PORT")
        return text
    if table.text(kind) == "-":
        raise table.error(kind, "expected a path: stdin is another one each time")
    return str(_path(table, kind, directory))


def _path(table: TomlTable, key: str, directory: Path) -> Path | None:
    text = table.text(key)
    if text == "":
        raise table.error(key, "expected a path, not an empty string")
    return None if text is None else directory / Path(text).expanduser()


def _joined(texts: Iterable[str] | None, separator: str) -> str | None:
    return None if texts is None else separator.join(texts)
