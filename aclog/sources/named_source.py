"""A source by its name: a path, a server, a commit or a context."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path

from attrs import field

from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.filelog.files import list_checkpoints, list_segments
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.values import frozen
from aclog.snapshots.moments import moment_text, read_moment
from aclog.sources.acl_lines import STDIN, NameFile
from aclog.sources.choice import ChosenSource, SourceSelection, choose_source
from aclog.sources.contexts import Context
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.nodes import Node
from aclog.sources.notes import Notify

# A state source as a file names it: `kafka/`, or `{log: prod, as-of: 30d ago}`.


_KINDS = ("log", "snapshot", "acls", "ref", "bootstrap-controller", "bootstrap-server", "context")
_SERVERS = ("bootstrap-controller", "bootstrap-server")
_KEYS = (*_KINDS, "as-of", "format", "modules", "topics", "command-config")
_FILES = frozenset(("log", "snapshot", "acls"))


@frozen(kw_only=True)
class NamedSource:
    """One state source; paths are as seen from the working directory."""

    kind: str
    """One of the keys of `_KINDS`."""
    value: str
    """The path, the servers, GITREF:PATH in the repository of the working directory, or the name of a context."""
    as_of: str | None = None
    """The moment, as `--as-of`; without a zone it is in UTC, so that a file has the same meaning everywhere."""
    form: AclsFormat = AclsFormat.AUTO
    modules: Mapping[str, str] = field(factory=dict, eq=False)
    topics: str | None = None
    """A file of the topics that exist."""
    command_config: str | None = None
    place: str = field(default="", eq=False)
    """File and line that name it, for errors."""

    def open(self, notify: Notify) -> ChosenSource:
        """Return the source, to be read as of its moment; the notes of its recovery go to `notify`.

        Raises:
            ConfigError: a path that does not exist, an invalid address or moment, a bad properties file.

        """
        as_of = None if self.as_of is None else absolute_moment(self.as_of, now_ms=current_time_ms())
        if self.kind == "context":
            return choose_source(self._of_context(as_of), notify)
        is_path = self.kind in ("log", "snapshot")
        selection = SourceSelection(
            **{self.kind.replace("-", "_"): Path(self.value) if is_path else self.value},  # type: ignore[arg-type]
            form=self.form,
            modules=self.modules,
            topics=None if self.topics is None else NameFile(self.topics),
            command_config=None if self.command_config is None else Path(self.command_config),
            as_of=as_of,
        )
        return choose_source(selection, notify)

    def _of_context(self, as_of: str | None) -> SourceSelection:
        from aclog.sources.contexts import read_context_file  # of the user's own, which few files name

        try:
            return selection_of(read_context_file().context(self.value), as_of=as_of)
        except ConfigError as error:
            raise ConfigError(f"{self.place}: {error}") from error

    @property
    def name(self) -> str:
        """How people name it: `kafka`, `prod as of 30d ago`."""
        return self.value if self.as_of is None else f"{self.value} as of {self.as_of}"


def parse_source(node: Node, directory: Path) -> NamedSource:
    """Return the source that a value of a file names; paths in it begin at `directory`, that of the file.

    A text is a path: a directory of segments or checkpoints is a log, `*.checkpoint` a checkpoint, anything else files
    of rules.

    Raises:
        ConfigError: not exactly one source, an unknown key, a value that fits none, or an invalid moment;
            with file and line.

    """
    if not isinstance(node.value, Mapping):
        path = _source_path(node, directory)
        return NamedSource(kind=_kind_of_path(path), value=path, place=_place(node))
    node.check_keys(_KEYS, "the source")
    keys = [key for key in _KINDS if node.get(key) is not None]
    if len(keys) != 1:
        raise node.error(f"expected a path, or exactly one of {', '.join(_KINDS)}")
    (kind,) = keys
    value = node.required(kind)
    _check_companions(node, kind)
    return NamedSource(
        kind=kind,
        value=_source_path(value, directory) if kind in _FILES else value.text(kind),
        as_of=_moment(node.get("as-of")),
        form=_format(node.get("format")),
        modules=_modules(node.get("modules"), directory),
        topics=_optional_path(node.get("topics"), directory),
        command_config=_optional_path(node.get("command-config"), directory),
        place=_place(node),
    )


def absolute_moment(text: str, *, now_ms: int) -> str:
    """Return a moment that means the same at any time; `30d ago` counts from `now_ms`, in ms since 1970.

    Raises:
        ConfigError: neither an offset, nor a time.

    """
    return moment_text(read_moment(text, now=datetime.fromtimestamp(now_ms / 1000, UTC)).moment)


def _kind_of_path(path: str) -> str:
    location = Path(path)
    if location.is_dir():
        return "log" if list_segments(location) or list_checkpoints(location) else "acls"
    return "snapshot" if location.name.endswith(".checkpoint") else "acls"


def _check_companions(node: Node, kind: str) -> None:
    files = dict.fromkeys(("format", "modules", "topics"), ("acls", "ref"))
    fits = {**files, "command-config": _SERVERS, "as-of": ("log", "bootstrap-controller", "context")}
    for key, kinds in fits.items():
        member = node.get(key)
        if member is not None and kind not in kinds:
            raise member.error(f"{key}: only together with {' or '.join(kinds)}, not {kind}")


def _moment(node: Node | None) -> str | None:
    if node is None:
        return None
    text = node.text("as-of")
    try:
        absolute_moment(text, now_ms=current_time_ms())
    except ConfigError as error:
        raise node.error(f"as-of: {error}") from error
    return text


def _format(node: Node | None) -> AclsFormat:
    if node is None:
        return AclsFormat.AUTO
    text = node.text("format")
    if text not in set(AclsFormat):
        raise node.error(f"format {text[:40]!r} is not one of {', '.join(AclsFormat)}")
    return AclsFormat(text)


def _modules(node: Node | None, directory: Path) -> Mapping[str, str]:
    if node is None:
        return {}
    return {source: _source_path(each, directory) for source, each in node.mapping("modules").items()}


def _optional_path(node: Node | None, directory: Path) -> str | None:
    return None if node is None else _source_path(node, directory)


def _source_path(node: Node, directory: Path) -> str:
    text = node.text("the source")
    if not text or "\0" in text:
        raise node.error("expected a path")
    return _shortest(directory / text)


def _shortest(path: Path) -> str:
    """Return a path without `..` in its middle, unless a symbolic link makes that another one."""
    short = os.path.normpath(path)
    return short if Path(short).resolve() == path.resolve() else str(path)


def _place(node: Node) -> str:
    return f"{node.file}:{node.line}"


# A source as a word of a command line, recognised by what it is.


_SERVERS_WORD = re.compile(r"[^/,\s]+:[0-9]{1,5}(,[^/,\s]+:[0-9]{1,5})*", re.ASCII)
_MOST_SHOWN = 80
"""Errors quote no more of a word than this."""


@frozen(kw_only=True)
class SourceWord:
    """What a word names: `kind` is one of `_KINDS`, or empty for servers whose role is to be read from them."""

    kind: str
    text: str
    what: str
    """The kind in words: `a directory with a log`."""

    def flags(self, prefix: str = "") -> tuple[str, ...]:
        """Return the flags that name it, one for each role of servers; `prefix` is `to-` for a second state."""
        kinds = (self.kind,) if self.kind else reversed(_SERVERS)
        text = shlex.quote(self.text)
        return tuple("-c " + text if f"{prefix}{kind}" == "context" else f"--{prefix}{kind} {text}" for kind in kinds)


def recognise(text: str, *, prefix: str = "") -> SourceWord:
    """Return what a word names: a path, a context, servers, or a path in a commit; no server is contacted.

    Raises:
        ConfigError: nothing of these, or several; the error lists the flags, with `prefix` (`to-` for a second state).
        OSError: a path cannot be read.

    """
    if not text:
        raise ConfigError("an empty word names no source")
    path = _path_word(text)
    words = (path, _context_word(text, is_alone=path is None), _servers_word(text))
    named = [each for each in words if each is not None]
    commit = _commit_word(text, is_alone=not named)
    if commit is not None:
        named.append(commit)
    if len(named) == 1:
        return named[0]
    if not named:
        raise _unrecognised(text)
    kinds = " and ".join(each.what for each in named)
    flags = " or ".join(flag for each in named for flag in each.flags(prefix))
    raise ConfigError(f"{text[:_MOST_SHOWN]!r} is {kinds}: expected {flags}")


def _path_word(text: str) -> SourceWord | None:
    if text == STDIN:
        return SourceWord(kind="acls", text=text, what="stdin")
    if "\0" in text or not os.path.exists(text):  # noqa: PTH110 - a word that is too long is no path
        return None
    kind = _kind_of_path(text)
    is_directory = Path(text).is_dir()
    what = {"log": "a directory with a log", "snapshot": "a checkpoint"}.get(kind)
    return SourceWord(kind=kind, text=text, what=what or ("a directory" if is_directory else "a file"))


def _context_word(text: str, *, is_alone: bool) -> SourceWord | None:
    """Return a context; of a word that is a path as well, only if the contexts can be read.

    Raises:
        ConfigError, OSError: the contexts cannot be read, and the word is no path.

    """
    from aclog.sources.contexts import context_names

    try:
        is_context = text in context_names()
    except (ConfigError, OSError):
        if is_alone:
            raise
        return None
    return SourceWord(kind="context", text=text, what="a context") if is_context else None


def _servers_word(text: str) -> SourceWord | None:
    if _SERVERS_WORD.fullmatch(text) is None:
        return None
    return SourceWord(kind="", text=text, what="an address HOST:PORT")


def _commit_word(text: str, *, is_alone: bool) -> SourceWord | None:
    """Return a path in a commit; unless the word could be nothing else, only one that exists there."""
    from aclog.sources.git import ask_git, parse_git_place

    if ":" not in text:
        return None
    try:
        place = parse_git_place(text)
        if not place.ref or is_alone:
            is_there = ask_git("rev-parse", "--verify", "--quiet", f"{place.ref or 'HEAD'}^{{tree}}").output is not None
        else:
            is_there = ask_git("cat-file", "-e", f"{place.ref}:{place.path}").output is not None
    except ConfigError:  # no git, no repository, or no place of one
        return None
    what = "a path in the index" if not place.ref else f"a path in the commit {place.ref}"
    return SourceWord(kind="ref", text=text, what=what) if is_there else None


def _unrecognised(text: str) -> ConfigError:
    from aclog.sources.contexts import context_names

    near = get_close_matches(text, context_names(), n=1)
    hint = f": did you mean the context {near[0]}?" if near else _expected_form(text)
    return ConfigError(f"{text[:_MOST_SHOWN]!r} is no source: there is no such file, directory or context{hint}")


def _expected_form(text: str) -> str:
    ref, colon, rest = text.partition(":")
    if colon and rest.isdigit():
        return ": expected HOST:PORT with a port up to 65535"
    if colon and ref:
        return f", and no commit {ref[:_MOST_SHOWN]!r} in a git repository around the working directory"
    return (
        ": expected a log directory, a checkpoint, files of ACLs, HOST:PORT, GITREF:PATH or a context "
        "(resources and principals have flags, such as --topic)"
    )


def role_flag(text: str, command_config: Path | None) -> str:
    """Return which flag servers belong to, by the APIs of the first one that responds: without its dashes.

    Raises:
        ConfigError: no server responds or admits this client, or it is neither a broker nor a controller; the error
            lists both flags.

    """
    from aclog.client.connection import connect, role_of
    from aclog.client.errors import UnreachableError
    from aclog.sources.server_flags import client_security, parse_servers, run

    servers, security = parse_servers("SOURCE", text), client_security(command_config)

    async def apis() -> Sequence[int]:
        """Return the APIs of the first server that responds."""
        for server in servers[:-1]:
            with suppress(UnreachableError):
                async with await connect(server, security) as connection:
                    return tuple(connection.apis)
        async with await connect(servers[-1], security) as connection:
            return tuple(connection.apis)

    both = f"expected --bootstrap-server {text} or --bootstrap-controller {text}"
    try:
        role = role_of(run(apis()))
    except MetadataError as error:
        raise ConfigError(f"{error}; the role of {text} is unknown: {both}") from error
    if role is None:
        raise ConfigError(f"{text}: neither a broker nor a controller by its APIs: {both}")
    return role.value.removeprefix("--")


# The source of a context, to be opened without a command line: for the library, and for files that name a context.


def selection_of(context: Context, *, as_of: str | None = None) -> SourceSelection:
    """Return what aclog.sources.choice.choose_source opens for a context, without its settings.

    Raises:
        ConfigError, OSError: the ZooKeeper properties that it names cannot be read.

    """
    is_path = context.kind in {"log", "snapshot"}
    is_store = context.kind == "zookeeper"
    named = {} if is_store else {context.kind.replace("-", "_"): Path(context.value) if is_path else context.value}
    return SourceSelection(
        **named,  # type: ignore[arg-type]
        authorizer_properties=tuple(store_properties(context)) if is_store else (),
        form=AclsFormat(context.acls_format or AclsFormat.AUTO),
        modules=context.modules,
        topics=None if context.topics is None else NameFile(context.topics),
        command_config=context.command_config,
        as_of=as_of,
    )


def store_properties(context: Context) -> Iterator[str]:
    """Yield the KEY=VALUE properties with which AclAuthorizer would reach the ZooKeeper of a context.

    Raises:
        ConfigError, OSError: the properties that it names cannot be read.

    """
    yield f"zookeeper.connect={context.value}"
    if context.zookeeper_config is not None:
        from aclog.config.properties import read_properties

        properties, _ = read_properties(context.zookeeper_config)
        yield from (f"{key}={value}" for key, value in properties.items())
