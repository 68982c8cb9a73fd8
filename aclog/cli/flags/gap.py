"""How long a broker must be silent for it to count as a hole."""

import re
from typing import Annotated, TypeAlias

import typer

from aclog.metalog.errors import ConfigError

_UNITS = {"h": 1, "d": 24, "w": 7 * 24}
_HOUR = 3_600_000_000

Gap: TypeAlias = Annotated[
    str,
    typer.Option(
        "--gap",
        metavar="TIME",
        help="A broker that logs nothing for so long ([cyan]6h[/], [cyan]1d[/], [cyan]2w[/]) leaves a hole.",
    ),
]


def gap_us(text: str) -> int:
    """Return --gap in us. Raises ConfigError: it is no time, or under an hour."""
    found = re.fullmatch(r"([0-9]{1,6})([hdw])", text.strip())
    if found is None or not int(found[1]):
        raise ConfigError(f"--gap {text[:40]!r}: expected hours, days or weeks, such as 6h, 1d or 2w")
    return int(found[1]) * _UNITS[found[2]] * _HOUR
