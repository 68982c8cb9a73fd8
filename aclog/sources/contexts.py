"""Contexts: clusters and logs by name, in the user's file."""

import fcntl
import os
import re
import stat
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from copy import deepcopy
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

from attrs import field

from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.filelog.files import replace_durably
from aclog.metalog.values import frozen
from aclog.sources.formats.format import AclsFormat
from aclog.sources.toml import RANGES, VERSION, TomlDocument, TomlTable, ranges_of, read_toml
from aclog.terminal.columns import OutputFormat
from aclog.terminal.output import warn

# Files of client properties that hold passwords: their permissions.


_SECRET = re.compile(r"password|passphrase|secret|jaas|token|credential|user\.info|hmac|\.key$", re.IGNORECASE)
_PLAIN = re.compile(
    r"client\.(id|dns\.lookup)|security\.protocol|sasl\.mechanism|bootstrap\.(servers|controllers)|zookeeper\.connect"
    r"|(ssl|sasl|zookeeper|authorizer)\..*(\.(location|type|protocol|protocols|suites|algorithm|class|ms|enable|name))"
    r"|\w+(\.\w+)*\.ms"
)
"""Properties whose values can be shown; an unknown one may be a secret."""
_OTHERS_READ = stat.S_IRGRP | stat.S_IROTH
_HIDDEN = "***"


def is_secret(key: str) -> bool:
    """Return whether a property of this name holds a secret."""
    return _SECRET.search(key) is not None


def shown_value(key: str, value: str) -> str:
    """Return the value of a property for output: *** unless it is known not to be a secret."""
    return value if _PLAIN.fullmatch(key) and not is_secret(key) else _HIDDEN


def warn_of_readers(path: Path) -> None:
    """Warn if others can read a file of properties that holds a secret; Kafka's tools do not check this, ssh refuses.

    Errors of reading the file are left to its users.
    """
    from aclog.config.properties import read_properties

    try:
        mode = path.stat().st_mode
        if not mode & _OTHERS_READ:
            return
        values, _ = read_properties(path)
    except (MetadataError, OSError):
        return
    if any(is_secret(key) for key in values):
        warn(f"{path}: others can read the secrets in it (mode {mode & 0o777:04o}): chmod 600 {path}")


# Where the file of contexts is: in the user's own directory of settings, never in the one a command runs in.


VARIABLE = "ACLOG_CONFIG"
_NAME = "config.toml"


def config_file() -> Path | None:
    """Return the path of the file, which need not exist; it is absolute. None if the user has no home directory.

    That of $ACLOG_CONFIG; else config.toml below $XDG_CONFIG_HOME/aclog or ~/.config/aclog, on macOS and Windows where
    such files exist.

    Raises:
        ConfigError: ACLOG_CONFIG is a relative path, which would mean another file in each directory.

    """
    if value := os.environ.get(VARIABLE):
        path = Path(value).expanduser()
        if not path.is_absolute():
            raise ConfigError(f"{VARIABLE}={value}: expected an absolute path, the same file in every directory")
        return path
    if sys.platform in {"darwin", "win32"}:
        from platformdirs import user_config_path

        return user_config_path("aclog", appauthor=False) / _NAME
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))  # a relative one is ignored, as specified
    if not base.is_absolute():
        home = _home()
        if home is None:
            return None
        base = home / ".config"
    return base / "aclog" / _NAME


def _home() -> Path | None:
    home = Path(os.environ.get("HOME", ""))
    if home.is_absolute():
        return home
    try:
        import pwd

        home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except (ImportError, KeyError):
        return None
    return home if home.is_absolute() else None


# A context: a cluster or a log by name, and its settings.


KINDS = ("log", "snapshot", "acls", "ref", "bootstrap-controller", "bootstrap-server", "zookeeper")
"""The sources that a context may be, each as the flag of this name takes it."""


@frozen(kw_only=True)
class Context:
    """One source and its settings; None: not in the file. Paths are absolute."""

    name: str
    kind: str
    """One of KINDS."""
    value: str
    """The path, the servers, or GITREF:PATH in the repository of the working directory."""
    acls_format: str | None = None
    modules: Mapping[str, str] = field(factory=dict)
    """The directory of each Terraform module, by its source."""
    topics: str | None = None
    """A file of the topics that exist."""
    command_config: Path | None = None
    """Client properties, with which a cluster is reached."""
    zookeeper_config: Path | None = None
    """zookeeper.* properties, with which a ZooKeeper is reached."""
    super_users: str | None = None
    """The broker's super.users, separated by semicolons."""
    allow_everyone: bool | None = None
    semantics: str | None = None
    kafka_version: str | None = None
    """The Kafka that decides."""
    cidr: bool | None = None
    """Whether that takes a host with a slash for a range of addresses."""
    timezone: str | None = None
    format: str | None = None
    """The default format of lists and answers."""
    place: str = field(default="", eq=False)
    """File and line that name it."""

    @property
    def address(self) -> str:
        """Its source, as a flag: `--bootstrap-server HOST:PORT`."""
        return f"--{self.kind} {self.value}"

    def decides(self) -> dict[str, str]:
        """Return the settings that change decisions, as people read them, by the names of their fields here."""
        named = {
            "super_users": ("super.users", self.super_users or None),
            "allow_everyone": ("allow.everyone.if.no.acl.found", "true" if self.allow_everyone else None),
            "semantics": ("semantics", self.semantics if self.semantics != "kafka" else None),
            "cidr": (
                ("kafka-version", self.kafka_version) if self.kafka_version else ("cidr", "true" if self.cidr else None)
            ),
        }
        return {name: f"{key}={value}" for name, (key, value) in named.items() if value is not None}


# Which context a command uses: the one it names, that of the environment, or the one that `aclog context use` set.


CONTEXT_VARIABLE = "ACLOG_CONTEXT"


class ChosenBy(StrEnum):
    """How the context was chosen, in words."""

    NAME = "named here"
    VARIABLE = "named by ACLOG_CONTEXT"
    CURRENT = "set by `aclog context use`"


@frozen(kw_only=True)
class ChosenContext:
    """A context, as it was when the command began, and why it is used."""

    context: Context
    by: ChosenBy

    @property
    def is_ambient(self) -> bool:
        """Whether it was chosen before this command, so that its user may be unaware."""
        return self.by is not ChosenBy.NAME


def choose_context(name: str | None = None) -> ChosenContext | None:
    """Return the context of this name, else that of $ACLOG_CONTEXT, else the current one; None without any.

    An empty name or variable selects no context.

    Raises:
        ConfigError: no context has the name, or the file is not the user's own, or invalid.
        OSError: the file cannot be read.

    """
    by, selected = (ChosenBy.NAME, name) if name is not None else (ChosenBy.VARIABLE, os.environ.get(CONTEXT_VARIABLE))
    if selected == "":
        return None
    if selected is None and not _file_exists():
        return None  # nothing else is imported: most commands have no contexts to look for

    file = read_context_file()
    if selected is None:
        by, selected = ChosenBy.CURRENT, file.current
    if selected is None:
        return None
    try:
        return ChosenContext(context=file.context(selected), by=by)
    except ConfigError as error:
        if by is ChosenBy.NAME:
            raise
        raise ConfigError(f"{error} (it is {by})") from None


def context_names() -> tuple[str, ...]:
    """Return the names of the user's contexts; none without the file. Raises as `read_context_file`."""
    return tuple(read_context_file().names) if _file_exists() else ()


def _file_exists() -> bool:
    path = config_file()
    return path is not None and path.exists()


# One table of the file of contexts: `[contexts.prod]`.


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
                f"{table.document.place((*table.path, key))}: {key[:80]!r} of context {name}: client properties "
                "belong in a file with its own permissions: expected command-config = FILE"
            )
    table.only(KEYS)


def _kind(table: TomlTable, name: str) -> str:
    keys = [key for key in KINDS if key in table.values]
    if len(keys) != 1:
        sources = " and ".join(keys) or "no source"
        where = table.document.place((*table.path, keys[1]) if keys else table.path)
        raise ConfigError(f"{where}: context {name} has {sources}: expected exactly one of {', '.join(KINDS)}")
    (kind,) = keys
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


# Whether a file is its user's own: a file that others can write must not decide anything.


_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def check_own(path: Path) -> None:
    """Check that no other user can change a file, as ssh does with its own.

    Raises:
        ConfigError: it belongs to another user (root may own it), or others may write it; OSError: it cannot be looked
            at.

    """
    if not hasattr(os, "getuid"):  # Windows: the directory of the user's profile is their own
        return
    status = path.stat()
    if status.st_uid not in {0, os.getuid()}:
        raise ConfigError(f"{path}: it belongs to another user (uid {status.st_uid}): expected a file of your own")
    if status.st_mode & _OTHERS_WRITE:
        raise ConfigError(f"{path}: others may write it (mode {status.st_mode & 0o777:04o}): chmod go-w {path}")


# The file of contexts, read: config.toml of the user.


CONTEXTS, CURRENT = "contexts", "current"
"""The keys at the top of the file: a table of contexts, and the name of the one that is used if none is named."""


@frozen(kw_only=True)
class ContextFile:
    """The content of the file; a context is validated on first use."""

    path: Path
    current: str | None = None
    _table: TomlTable | None = field(default=None, alias="table", repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The contexts, in the order of the file."""
        return () if self._table is None else tuple(self._table.values)

    def context(self, name: str) -> Context:
        """Return a context. Raises ConfigError: no such context, or an invalid one."""
        if self._table is None or name not in self._table.values:
            raise self.unknown(name)
        return read_context(self._table.table(name), name, self.path.parent)

    def unknown(self, name: str) -> ConfigError:
        """Return the error about an unknown context, with the existing names."""
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
    location = path or own_file()
    try:
        check_own(location)
        document = read_toml(location)
    except FileNotFoundError:
        return ContextFile(path=location)
    return context_file_of(document, location)


def own_file() -> Path:
    """Return the path of the user's file. Raises ConfigError: no home directory."""
    path = config_file()
    if path is None:
        raise ConfigError(f"no home directory, so there is no file of contexts: expected HOME or {VARIABLE}")
    return path


def context_file_of(document: TomlDocument, path: Path) -> ContextFile:
    """Parse the text of a file. Raises ConfigError as read_context_file."""
    root = TomlTable(document=document, values=document.values)
    root.only((CONTEXTS, CURRENT))
    return ContextFile(path=path, current=root.text(CURRENT) or None, table=root.table(CONTEXTS))


# Changes the file of contexts: one change at a time, whole or not at all, and with every comment kept.


Contents: TypeAlias = MutableMapping[str, Any]
"""The file as tables in tables."""
_HEADER = "# The contexts of aclog: clusters and logs by name (`aclog context --help`).\n"
_DIRECTORY_MODE = 0o700


def add_context(path: Path, name: str, values: dict[str, Any], *, replace: bool) -> None:
    """Add a context, and make it the current one if it is the first. Raises ConfigError: it exists, without `replace`.

    Raises also what `change_file` does.
    """

    def add(contents: Contents) -> None:
        """See change_file."""
        contexts = contents.setdefault(CONTEXTS, {})
        if name in contexts and not replace:
            raise ConfigError(f"{path}: context {name} exists already: --replace replaces it")
        contexts[name] = values

    change_file(path, add, check=name)


def use_context(path: Path, name: str | None) -> None:
    """Make a context the current one; None: no context is. Raises ConfigError: there is no such context."""

    def use(contents: Contents) -> None:
        """See change_file."""
        if name is None:
            contents.pop(CURRENT, None)
            return
        _contexts_with(path, contents, name)
        contents[CURRENT] = name

    change_file(path, use, check=name)


def remove_context(path: Path, name: str) -> None:
    """Remove a context; if it was the current one, none is. Raises ConfigError: there is no such context."""

    def remove(contents: Contents) -> None:
        """See change_file."""
        contexts = _contexts_with(path, contents, name)
        del contexts[name]
        if not contexts:  # the library leaves no trace of a table that only had tables
            del contents[CONTEXTS]
        if contents.get(CURRENT) == name:
            del contents[CURRENT]

    change_file(path, remove)


def rename_context(path: Path, old: str, new: str) -> None:
    """Give a context another name. Raises ConfigError: there is no such context, or the other exists."""

    def rename(contents: Contents) -> None:
        """See change_file."""
        contexts = _contexts_with(path, contents, old)
        if new in contexts:
            raise ConfigError(f"{path}: context {new} exists already")
        contexts[new] = contexts.pop(old)
        if contents.get(CURRENT) == old:
            contents[CURRENT] = new

    change_file(path, rename)


def change_file(path: Path, change: Callable[[Contents], None], *, check: str | None = None) -> None:
    """Change the file under a lock; `check`: a context that must be valid afterwards.

    A file that is a symbolic link stays one. Nothing is written if anything fails.

    Raises:
        ConfigError: as read_context_file, what `change` raises, and a device or a pipe; LogError, OSError: it cannot be
            written.

    """
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path}: not a regular file: expected one that can be changed")
    path.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
    target = path.resolve()
    with _locked(target):
        read_context_file(path)  # it is the user's own, and sound
        text = target.read_bytes().decode("utf-8-sig") if target.exists() else _HEADER
        contents = tomllib.loads(text)
        change(contents)
        new = _changed(text, change)
        if new is None or tomllib.loads(new) != contents:
            raise ConfigError(f"{path}: this change would disturb something else in the file: make it with an editor")
        file = context_file_of(TomlDocument(name=str(path), text=new, values=deepcopy(contents)), path)
        if check is not None:
            file.context(check)
        replace_durably(target, new.encode())


def _changed(text: str, change: Callable[[Contents], None]) -> str | None:
    """Return the text after a change, with all its comments; None if the library cannot make it."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        change(document)
        return tomlkit.dumps(document).rstrip("\r\n") + ("\r\n" if "\r\n" in text else "\n")
    except TOMLKitError:
        return None


def _contexts_with(path: Path, contents: Contents, name: str) -> Contents:
    contexts: Contents = contents.get(CONTEXTS, {})
    if name not in contexts:
        raise read_context_file(path).unknown(name)
    return contexts


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Hold the lock of a file, which is another file beside it: the file itself is replaced."""
    descriptor = os.open(target.with_name(f".{target.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
