"""The file of contexts, read: config.toml of the user."""

from difflib import get_close_matches
from pathlib import Path

from attrs import field, frozen

from aclog.metalog.errors import ConfigError
from aclog.sources.contexts.config_place import VARIABLE, config_file
from aclog.sources.contexts.context import Context
from aclog.sources.contexts.context_table import read_context
from aclog.sources.contexts.trusted_file import check_own
from aclog.sources.repository.toml_document import TomlDocument, read_toml
from aclog.sources.repository.toml_table import TomlTable

CONTEXTS, CURRENT = "contexts", "current"
"""The keys at the top of the file: a table of contexts, and the name of the one that is used if none is named."""


@frozen(kw_only=True)
class ContextFile:
    """What the file says; a context is looked at only when it is asked for."""

    path: Path
    current: str | None = None
    _table: TomlTable | None = field(default=None, alias="table", repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The contexts, in the order of the file."""
        return () if self._table is None else tuple(self._table.values)

    def context(self, name: str) -> Context:
        """Return a context. Raises ConfigError: there is none of that name, or it says what it cannot."""
        if self._table is None or name not in self._table.values:
            raise self.unknown(name)
        return read_context(self._table.table(name), name, self.path.parent)

    def unknown(self, name: str) -> ConfigError:
        """Return the error about a name that no context has, with those that there are."""
        if not self.names:
            return ConfigError(f"no context {name!r}: {self.path} has none: `aclog context add {name}` makes it")
        near = get_close_matches(name, self.names, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        return ConfigError(f"no context {name!r} in {self.path}: {hint}it has {', '.join(self.names)}")


def read_context_file(path: Path | None = None) -> ContextFile:
    """Read a file of contexts, by default the user's; one that is not there has none.

    Raises:
        ConfigError: another user's file, one that others may write, not TOML, or an unknown key, with its line.
        OSError: it cannot be read.

    """
    found = path or own_file()
    try:
        check_own(found)
        document = read_toml(found)
    except FileNotFoundError:
        return ContextFile(path=found)
    return context_file_of(document, found)


def own_file() -> Path:
    """Return the path of the user's file. Raises ConfigError: there is no place for it."""
    path = config_file()
    if path is None:
        raise ConfigError(f"no home directory, so there is no file of contexts: expected HOME or {VARIABLE}")
    return path


def context_file_of(document: TomlDocument, path: Path) -> ContextFile:
    """Return what the text of a file says. Raises ConfigError as read_context_file."""
    root = TomlTable(document=document, values=document.values)
    root.only((CONTEXTS, CURRENT))
    return ContextFile(path=path, current=root.text(CURRENT) or None, table=root.table(CONTEXTS))
