"""How a source is opened: by its path, by its servers, or by the files of rules."""

from collections.abc import Iterable, Mapping
from datetime import UTC, tzinfo
from os import PathLike
from pathlib import Path

from attrs import evolve

from aclog.library.arguments import optional_text, path_of, shown, text_of, texts_of, told_as_log_errors
from aclog.library.defaults import Defaults, LogOptions
from aclog.library.log import Log
from aclog.metalog.errors import ConfigError
from aclog.snapshots.zones import parse_zone
from aclog.sources.acls_source import AclsSource
from aclog.sources.choice import SourceSelection, choose_source
from aclog.sources.formats.format import AclsFormat
from aclog.sources.git.git_place import parse_git_place
from aclog.sources.paths import open_path
from aclog.sources.read_options import ReadOptions


def open_log(
    path: str | PathLike[str] | None = None,
    *,
    bootstrap_controller: str | None = None,
    bootstrap_server: str | None = None,
    command_config: str | PathLike[str] | None = None,
    max_age: float | None = None,
    context: str | None = None,
    timezone: str | None = None,
) -> Log:
    """Open a directory of segments and checkpoints, a checkpoint (`*.checkpoint`), or a file of ACLs as JSON lines.

    Instead of a path, `bootstrap_controller` ("host:port,...") follows the log of a running quorum (aclog or Kafka),
    and `bootstrap_server` reads a running cluster through its admin API; `command_config` is a client properties file
    for both. Nothing is locked or changed. A log that is being written is followed: each image() is the newest.

    Or `context` is the name of one of `aclog context list`; its settings decide where image.authorizer() is given none.
    `timezone` (Europe/Berlin, +02:00, local) is of times that name none: by default the context's, or UTC.

    With `max_age`, image() raises a StaleError rather than return a state that the cluster last confirmed more than so
    many seconds ago.

    Raises:
        ConfigError: not exactly one of the four, an unknown context or time zone, an invalid address,
            a bad properties file, or `max_age` with a path.
        LogError: the path does not exist.

    """
    notes: list[str] = []
    if context is not None:
        if (path, bootstrap_controller, bootstrap_server, command_config) != (None, None, None, None):
            raise ConfigError("expected either a context, or a path or a running cluster")
        return _open_context(text_of("context", context, "prod"), _zone_of(timezone), max_age)
    options = LogOptions(max_age=max_age, zone=_zone_of(timezone) or UTC)
    place = None if path is None else path_of("path", path)
    if max_age is not None:
        _check_max_age(max_age, place)
    if place is not None and bootstrap_controller is None and bootstrap_server is None:
        if command_config is not None:
            raise ConfigError(f"{place}: command_config: nobody logs in to a path: expected a running cluster")
        with told_as_log_errors(place):
            return Log(open_path(place, notes.append), notes, options=options)
    if place is not None:
        raise ConfigError(f"{place}: expected a path or a running cluster, not both")
    if (bootstrap_controller is None) is (bootstrap_server is None):
        raise ConfigError(
            "expected a path, bootstrap_controller='HOST:PORT', bootstrap_server='HOST:PORT' or context='NAME'"
        )
    selection = SourceSelection(
        bootstrap_controller=optional_text("bootstrap_controller", bootstrap_controller, "kafka1:9093"),
        bootstrap_server=optional_text("bootstrap_server", bootstrap_server, "kafka1:9092"),
        command_config=None if command_config is None else Path(path_of("command_config", command_config)),
        max_age=max_age,
    )
    with told_as_log_errors(str(command_config)):
        return Log(choose_source(selection, notes.append).source, notes, options=options)


def open_acls(
    path: str | PathLike[str] | None = None,
    *,
    ref: str | None = None,
    format: str = "auto",  # noqa: A002  # the flag's name is --acls-format
    modules: Mapping[str, str | PathLike[str]] | None = None,
    topics: Iterable[str] | None = None,
) -> Log:
    """Open a file or a directory of ACLs: JSON lines, or files of GitOps tools (docs/gitops.md).

    `image().origins` tells the file and line of each ACL; what was read, and what was ignored, is in `notes` after the
    first image().

    Args:
        path: a file or a directory; `-` is stdin.
        ref: instead of a path, `GITREF:PATH`: the same as of a commit of the repository around the working directory.
        format: auto, jsonl, kafka-acls, ksm, strimzi, terraform, kafka-gitops, julie, jikkou or ns4kafka.
        modules: the directory of each Terraform module that is not among the files, by its source.
        topics: the topics that exist, for patterns that are about those.

    Raises:
        ConfigError: not exactly one of path and ref, an unknown format, or no such place in the repository. image()
            raises it for what is not understood, with file and line.

    """
    if (path is None) is (ref is None):
        raise ConfigError("expected either a path or ref=GITREF:PATH")
    if format not in list(AclsFormat):
        raise ConfigError(f"format {shown(format)} is not one of {', '.join(AclsFormat)}")
    if ref is not None:
        parse_git_place(text_of("ref", ref, "main:kafka"))
    names = None if topics is None else tuple(texts_of("topics", topics, "orders"))
    options = ReadOptions(
        form=AclsFormat(format),
        modules=_modules({} if modules is None else modules),
        topics=None if names is None else lambda: names,
    )
    notes: list[str] = []
    given = ref or "" if path is None else path_of("path", path)
    return Log(AclsSource(given, options=options, notify=notes.append, is_ref=ref is not None), notes)


def _open_context(name: str, zone: tzinfo | None, max_age: float | None) -> Log:
    """Open the source of a context, with its settings."""
    # Contexts are in TOML, which opening a path does without.
    from aclog.sources.contexts.choosing import choose_context  # noqa: PLC0415
    from aclog.sources.contexts.selection import selection_of  # noqa: PLC0415

    with told_as_log_errors("the file of contexts"):
        chosen = choose_context(name)
    if chosen is None:
        raise ConfigError("context '': expected the name of a context, such as 'prod'")
    found = chosen.context
    is_cluster = found.kind in ("bootstrap-controller", "bootstrap-server")
    if max_age is not None:
        _check_max_age(max_age, None if is_cluster else f"context {name}")
    notes: list[str] = []
    defaults = Defaults(
        super_users=found.super_users,
        allow_everyone=found.allow_everyone,
        semantics=found.semantics or "kafka",
        cidr=found.cidr,
    )
    if settings := ", ".join(found.decides().values()):
        notes.append(f"context {name}: decided with {settings}, unless image.authorizer() is given others")
    with told_as_log_errors(f"context {name}"):
        source = choose_source(evolve(selection_of(found), max_age=max_age), notes.append).source
    options = LogOptions(max_age=max_age, zone=zone or _zone_of(found.timezone) or UTC, defaults=defaults)
    return Log(source, notes, options=options)


def _zone_of(text: str | None) -> tzinfo | None:
    return None if text is None else parse_zone(text_of("timezone", text, "Europe/Berlin"))


def _check_max_age(max_age: object, path: str | None) -> None:
    if isinstance(max_age, bool) or not isinstance(max_age, (int, float)) or not max_age > 0:
        raise ConfigError(f"max_age {shown(max_age)}: expected seconds, more than 0")
    if path is not None:
        raise ConfigError(f"{path}: max_age: nobody confirms the state of a path: expected a running cluster")


def _modules(given: object) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise ConfigError(f"modules {shown(given)}: expected the directory of each module by its source")
    return {
        text_of("the source of a module", source, "acme/acl/kafka"): path_of("modules", place)
        for source, place in given.items()
    }
