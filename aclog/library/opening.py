"""How a source is opened: by its path, by its servers, or by the files of rules."""

from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path

from aclog.library.log import Log
from aclog.metalog.errors import ConfigError
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
) -> Log:
    """Open a directory of segments and checkpoints, a checkpoint (`*.checkpoint`), or a file of ACLs as JSON lines.

    Instead of a path, `bootstrap_controller` ("host:port,...") follows the log of a running quorum (aclog or Kafka),
    and `bootstrap_server` reads a running cluster through its admin API; `command_config` is a client properties file
    for both. Nothing is locked or changed. A log that is being written is followed: each image() is the newest.

    With `max_age`, image() raises a StaleError rather than return a state that the cluster last confirmed more than so
    many seconds ago.

    Raises:
        ConfigError: not exactly one of the three, an invalid address, a bad properties file, or `max_age` with a path.
        LogError: the path does not exist.

    """
    notes: list[str] = []
    if max_age is not None and not max_age > 0:
        raise ConfigError(f"max_age {max_age}: expected seconds, more than 0")
    if path is not None and max_age is not None:
        raise ConfigError(f"{fspath(path)}: max_age: nobody confirms the state of a path: expected a running cluster")
    if path is not None and bootstrap_controller is None and bootstrap_server is None:
        return Log(open_path(fspath(path), notes.append), notes)
    if path is not None:
        raise ConfigError(f"{fspath(path)}: expected a path or a running cluster, not both")
    config = None if command_config is None else Path(command_config)
    selection = SourceSelection(
        bootstrap_controller=bootstrap_controller,
        bootstrap_server=bootstrap_server,
        command_config=config,
        max_age=max_age,
    )
    return Log(choose_source(selection, notes.append).source, notes)


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
    if format not in set(AclsFormat):
        raise ConfigError(f"format {format!r} is not one of {', '.join(AclsFormat)}")
    if ref is not None:
        parse_git_place(ref)
    names = None if topics is None else tuple(topics)
    options = ReadOptions(
        form=AclsFormat(format),
        modules={source: fspath(directory) for source, directory in (modules or {}).items()},
        topics=None if names is None else lambda: names,
    )
    notes: list[str] = []
    given = fspath(path) if path is not None else ref or ""
    return Log(AclsSource(given, options=options, notify=notes.append, is_ref=ref is not None), notes)
