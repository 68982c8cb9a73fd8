"""A source by its name: a path, a server, a commit or a context."""

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from attrs import field, frozen

from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog.files import list_checkpoints, list_segments
from aclog.metalog.primitives import current_time_ms
from aclog.snapshots.moments import moment_text, read_moment
from aclog.sources.acl_lines import NameFile
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
