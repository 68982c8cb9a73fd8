"""How this aclog was installed, and the command line that installs it again, with extras.

aclog is on no package index. A hint to install it by its bare name would run the code of anyone who registers that
name. Each hint names the checkout, the wheel or the address that this aclog came from (`direct_url.json`, PEP 610), in
the words of the installer that made the environment: pip, uv, `uv tool`, `uvx` or pipx. Where the origin is unknown or
no longer there, a hint names the libraries of the extra, which other projects publish.

Begin with `install_command`.
"""

import json
import re
import shlex
import sys
from collections.abc import Mapping
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from importlib.metadata import Distribution

NAME = "aclog"


_EXTRA_OF = {
    "anyio": "web",
    "argon2": "web",
    "authlib": "web",
    "confluent_kafka": "kafka",
    "deltalake": "delta",
    "duckdb": "query",
    "httpx2": "web",
    "itsdangerous": "web",
    "jinja2": "web",
    "joserfc": "web",
    "kazoo": "zookeeper",
    "mcp": "mcp",
    "obstore": "s3",
    "pandas": "spark",
    "py4j": "spark",
    "pyarrow": "usage",
    "pyiceberg": "iceberg",
    "pyroaring": "usage",
    "pyspark": "spark",
    "python_multipart": "web",
    "starlette": "web",
    "uvicorn": "web",
}
"""The packages that are imported from extras, and the smallest extra that has each and is of use alone."""


def extra_of(module: str | None) -> str | None:
    """Return the extra that a module comes from; None if it is from none."""
    return _EXTRA_OF.get((module or "").partition(".")[0])


class Installer(Enum):
    """What made the environment."""

    PIP = "pip"
    UV = "uv"
    UV_TOOL = "uv tool"
    UVX = "uvx"
    PIPX = "pipx"


@attrs.frozen
class Installation:
    """One installed aclog."""

    installer: Installer
    python: str
    """The path of the environment's interpreter."""
    requirement: str | None = None
    """What installs this aclog, with `{extras}` in the place of extras: a path, or as of PEP 508; None if unknown."""
    editable: bool = False
    extras: frozenset[str] = frozenset()
    """Extras that the installer has recorded and drops unless they are named again (`uv tool` only)."""
    libraries: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict[str, tuple[str, ...]])
    """Each extra, and its requirements."""

    def command(self, *extras: str) -> str:
        """Return the command line, quoted for a shell, that installs this aclog again with these extras."""
        if self.installer is Installer.PIPX and extras:
            # `pipx install --force` would drop what was injected
            return _line("pipx", "inject", Path(self.python).parents[1].name, *self._libraries(extras))
        if self.requirement is None:
            return _line(*self._into(), *(self._libraries(extras) or (_WHEEL,)))
        whole = sorted(self.extras | set(extras))
        named = self.requirement.replace("{extras}", f"[{','.join(whole)}]" if whole else "")
        if self.installer is Installer.UVX:
            return _line("uvx", "--from", named, NAME)
        return _line(*self._into(), *(("--editable",) if self.editable else ()), named)

    def _into(self) -> tuple[str, ...]:
        match self.installer:
            case Installer.PIPX:
                return ("pipx", "install", "--force")
            case Installer.UV_TOOL if self.requirement is not None:
                return ("uv", "tool", "install", "--force")
            case Installer.PIP:
                return (self.python, "-m", "pip", "install")
            case _:
                return ("uv", "pip", "install", "--python", self.python)

    def _libraries(self, extras: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each for extra in extras for each in self.libraries.get(extra, ())))


_WHEEL = "WHEEL"
"""In place of an origin that is unknown: the reader's own wheel."""


def install_command(*extras: str) -> str:
    """Return the command line that installs the running aclog again, with extras: `install_command("kafka")`."""
    return running_installation().command(*extras)


def needs_extra(what: str, library: str, extra: str) -> str:
    """Return the line of an error: what needs a library that is not installed, and the command that installs it."""
    return f"{what} needs {library}, which is not installed: {install_command(extra)}"


def running_installation() -> Installation:
    """Return how the aclog that runs was installed, by the metadata of its environment."""
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415  # slow, and only an error needs it

    try:
        metadata = distribution(NAME)
    except PackageNotFoundError:  # run from a directory of sources
        return Installation(_installer(Path(sys.prefix)), sys.executable)
    return installation(metadata, Path(sys.prefix), sys.executable)


def installation(metadata: "Distribution", prefix: Path, python: str) -> Installation:
    """Return how a distribution was installed into the environment at `prefix`."""
    requirement, editable = _origin(metadata.read_text("direct_url.json"))
    return Installation(
        installer=_installer(prefix),
        python=python,
        requirement=requirement,
        editable=editable,
        extras=_receipt_extras(prefix / _UV_RECEIPT),
        libraries=_libraries_by_extra(metadata.requires or []),
    )


_UV_RECEIPT = "uv-receipt.toml"
_PIPX_RECEIPT = "pipx_metadata.json"
_UV_CACHES = ("archive-v", "environments-v", "builds-v")
"""How the folders of uv's cache begin, in which `uvx` keeps its environments."""


def _installer(prefix: Path) -> Installer:
    if (prefix / _UV_RECEIPT).exists():
        return Installer.UV_TOOL
    if (prefix / _PIPX_RECEIPT).exists():
        return Installer.PIPX
    if any(part.startswith(_UV_CACHES) for part in prefix.parts):
        return Installer.UVX
    return Installer.PIP if find_spec("pip") is not None else Installer.UV


def _origin(direct_url: str | None) -> tuple[str | None, bool]:
    """Return what installs the same aclog, and whether it is editable; None if that is unknown or gone."""
    if direct_url is None:
        return None, False
    from urllib.parse import urlsplit  # noqa: PLC0415  # slow, and only an error needs it
    from urllib.request import url2pathname  # noqa: PLC0415

    origin = json.loads(direct_url)
    url = origin["url"]
    if urlsplit(url).scheme == "file":
        path = url2pathname(urlsplit(url).path)
        editable = bool(origin.get("dir_info", {}).get("editable"))
        return (f"{path}{{extras}}" if Path(path).exists() else None), editable
    if vcs := origin.get("vcs_info"):
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    if folder := origin.get("subdirectory"):
        url = f"{url}#subdirectory={folder}"
    return f"{NAME}{{extras}} @ {url}", False


def _receipt_extras(receipt: Path) -> frozenset[str]:
    import tomllib  # noqa: PLC0415  # only an error needs it

    if not receipt.exists():
        return frozenset()
    tools = tomllib.loads(receipt.read_text("utf-8")).get("tool", {}).get("requirements", [])
    return frozenset(extra for each in tools if each.get("name") == NAME for extra in each.get("extras", ()))


def _libraries_by_extra(requirements: list[str]) -> dict[str, tuple[str, ...]]:
    by_extra: dict[str, tuple[str, ...]] = {}
    for each in requirements:
        text, _, marker = each.partition(";")
        if extra := re.search(r"""\bextra\s*==\s*["']([\w-]+)["']""", marker):
            by_extra[extra[1]] = (*by_extra.get(extra[1], ()), re.sub(r"\s", "", text))
    return by_extra


def _line(*words: str) -> str:
    return shlex.join(words)
