"""Where the output of a job goes: a directory of this machine, or the URI of one in another store.

With Spark Connect, a place is a path or URI of the server's stores, as text. This module does not import PySpark: a
refusal does not wait for it.
"""

import os
import re
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import unquote

from aclog.metalog.errors import ConfigError
from aclog.metalog.native import regex

Place: TypeAlias = Path | str
"""A directory of this machine, or the URI of one in another store (`s3a://BUCKET/KEY`)."""


TABLE_NAME: Final = regex(r"[\w-]+(?:\.[\w-]+)+")
"""The name of a table in a database or a catalog: a path without `/` can look the same."""


class Mode(StrEnum):
    """What becomes of an output that exists: a value of --mode."""

    ERROR = "error"
    """It is refused."""
    OVERWRITE = "overwrite"
    """The new output replaces it."""
    APPEND = "append"
    """It gets the new rows too."""


class OutFormat(StrEnum):
    """The format of an output: a value of --out-format."""

    PARQUET = "parquet"
    JSON = "json"
    DELTA = "delta"
    ICEBERG = "iceberg"

    @property
    def is_table(self) -> bool:
        """Whether the format has transactions of its own."""
        return self in {OutFormat.DELTA, OutFormat.ICEBERG}


_URI: Final = regex(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?=/)(?://(?P<authority>[^/]*))?(?P<path>(?:/.*)?)", re.DOTALL
)
_S3: Final = {"s3", "s3a", "s3n"}


def place_of(name: Path | str) -> Place:
    """Return the directory that a path or a `file:` URI names, or the URI of another store.

    A URI without an authority (`hdfs:///user/x`) stays one: its store is the default one of its scheme.

    Raises:
        ConfigError: a URI that may hold credentials, which the error does not name; one of a file on another machine;
            or a URI as a Path, which has lost slashes.

    """
    match = _URI.fullmatch(str(name))
    if match is None:
        return Path(name)
    scheme, authority, path = match["scheme"].lower(), match["authority"] or "", match["path"]
    if isinstance(name, Path):
        raise ConfigError(f"a URI of {scheme}: as a Path, which has lost slashes: expected it as text")
    _check_credentials(scheme, authority, path)
    if scheme == "file":
        if authority not in {"", "localhost"}:
            raise ConfigError(f"{name}: expected file:///PATH, of a directory of this machine")
        return Path("/", unquote(path))
    return f"{match['scheme']}://{authority}{path.rstrip('/') or ('' if authority else '/')}"


def _check_credentials(scheme: str, authority: str, path: str) -> None:
    if scheme in _S3:
        from aclog.usage.accesses.addresses import SCHEME, Address  # noqa: PLC0415 - few places are in a store

        Address.of(f"{SCHEME}{authority}{path}")
        return
    user, _, host = authority.rpartition("@")  # of abfss:// a container, of hdfs:// a user
    port = host.partition(":")[2]
    if ":" in user or (port and not port.isdecimal()):  # a secret may contain `/`, after which its rest is like a path
        raise ConfigError(
            f"a URI of {scheme}:// has `:` before its host, or no number behind it, so it may hold credentials: "
            "expected credentials in the settings of the store (--conf)"
        )


GLOB: Final = "[]{}*?\\"
"""Characters of Hadoop's globs. Spark writes to a path as it is, but reads one with such a character as a pattern."""


def out_place(name: Path | str) -> Place:
    """Return where an output goes, as `place_of`. Raises ConfigError: as that, or a name that Spark cannot read."""
    place = place_of(name)
    special = next((character for character in hadoop_name(place) if character in GLOB), None)
    if special is not None:
        raise ConfigError(
            f"--out {place}: has {special!r}, which is a part of a pattern (a glob) where Spark reads the output: "
            f"expected a path without {' '.join(GLOB)}"
        )
    return place


def hadoop_name(place: Place) -> str:
    """Return the URI by which Spark opens a place: it would look for a bare path in `fs.defaultFS`."""
    return f"file://{place.absolute()}" if isinstance(place, Path) else place  # Hadoop decodes no %20


def connect_address(master: str | None) -> str | None:
    """Return the address of a server of Spark Connect (sc://HOST:PORT), None for a session of this process's JVM."""
    address = master or os.environ.get("SPARK_REMOTE", "")
    return address if address.startswith(CONNECT_SCHEME) else None


CONNECT_SCHEME: Final = "sc://"


def server_place(name: Path | str, flag: str) -> str:
    """Return a path or URI of a server of Spark Connect, as its readers and writers take it.

    Raises:
        ConfigError: a relative path, or as `place_of`.

    """
    place = out_place(name) if flag == "--out" else place_of(name)
    text = file_uri(str(name)).rstrip("/") or "/"
    if isinstance(place, str):
        return place
    if not text.startswith(("/", "file:/")):
        raise ConfigError(f"{flag} {name}: a relative path: expected a URI, or an absolute path of the server's store")
    return text


def file_uri(name: str) -> str:
    """Return a path or URI with the scheme `file` as Hadoop knows it, in small letters: other schemes as they are."""
    return f"file:{name[5:]}" if name[:6].lower() == "file:/" else name


def local_directory(name: Path | str, flag: str, why: str) -> Path:
    """Return the directory that a path or a `file:` URI names; `why` is the reason.

    Raises:
        ConfigError: the URI of another store.

    """
    place = place_of(name)
    if isinstance(place, Path):
        return place
    raise ConfigError(
        f"{flag} {place}: expected a directory of this machine, or of a file system that the workers share: {why}"
    )


def check_new(out: Path | str, mode: Mode = Mode.ERROR) -> Place:
    """Refuse an output directory of this machine that exists, before the job rather than after it; return the place.

    With another mode, refuse what is no directory. Another store is examined once there is a session
    (`aclog.pipeline.outputs.check_absent`).

    Raises:
        ConfigError: `out` exists, or its parent directory does not.

    """
    place = out_place(out)
    if isinstance(place, str):
        return place
    if mode is not Mode.ERROR and place.exists():
        if not place.is_dir():
            raise ConfigError(f"{place}: expected a directory that this command has written")
        return place
    if place.exists():
        raise ConfigError(f"{place}: exists already: expected the name of a directory to create")
    if not place.absolute().parent.is_dir():
        raise ConfigError(f"{place.parent}: no such directory: expected one to create {place.name} in")
    return place
