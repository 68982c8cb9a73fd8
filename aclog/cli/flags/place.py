"""A source by its place, as one word on the command line: recognised by what it is."""

import re
from pathlib import Path
from typing import Annotated, TypeAlias

from attrs import evolve

from aclog.cli.flags.common import SourceFlags
from aclog.cli.options import Argument
from aclog.metalog.errors import ConfigError

PlaceArgument: TypeAlias = Annotated[
    str | None,
    Argument(
        metavar="[SOURCE]",
        help="A log directory, a checkpoint, a file or directory of ACLs, GITREF:PATH, or HOST:PORT of a broker; the "
        "flags of a source may name it instead.",
        show_default=False,
    ),
]

_SERVERS = re.compile(r"(?:[\w.-]+|\[[0-9a-fA-F:.%]+\]):\d{1,5}(?:,(?:[\w.-]+|\[[0-9a-fA-F:.%]+\]):\d{1,5})*")
_STDIN = "-"


def source_at(source: SourceFlags, place: str | None) -> SourceFlags:
    """Return the flags that name the source at a place; without one the flags as they are.

    Raises:
        ConfigError: flags name a source as well, or nothing is at the place.

    """
    if place is None:
        return source
    if source.is_given():
        raise ConfigError(f"{place}: a source is also named by a flag: expected one of them")
    path = Path(place)
    if place == _STDIN or path.is_file():
        return evolve(source, snapshot=path) if path.suffix == ".checkpoint" else evolve(source, acls=place)
    if path.is_dir():
        from aclog.metalog.filelog.files import list_checkpoints, list_segments

        is_log = bool(list_segments(path) or list_checkpoints(path))
        return evolve(source, log=path) if is_log else evolve(source, acls=place)
    if path.exists():
        return evolve(source, acls=place)
    if _SERVERS.fullmatch(place):
        return evolve(source, bootstrap_server=place)
    if ":" in place:
        return evolve(source, ref=place)
    raise ConfigError(
        f"{place}: no such file or directory: expected a log directory, a checkpoint, a file or directory of ACLs, "
        "GITREF:PATH or HOST:PORT"
    )
