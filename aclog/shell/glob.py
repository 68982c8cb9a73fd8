r"""Globs of Kafka's shell (GlobComponent): `*`, `?`, `{a,b}`, and `\` to escape a character.

A glob is one component of a path and is matched against encoded names. Groups do not nest; a malformed glob is a plain
name. Matching takes linear time for any name.
"""

import re
from collections.abc import Iterator
from itertools import product, takewhile
from math import prod
from typing import TypeAlias

from attrs import frozen

MAX_ALTERNATIVES = 256
"""A glob whose groups expand to more alternatives is treated as malformed."""

Token: TypeAlias = tuple[str, bool]
"""A character, and whether it is special."""


@frozen(kw_only=True)
class Glob:
    """One component of a path: either a plain name (`pattern` is None), or a pattern.

    `plain` is the name, or the characters before the first special one: what every match begins with.
    """

    plain: str
    pattern: re.Pattern[str] | None = None

    def matches(self, shown: str) -> bool:
        """Return whether the glob matches an encoded name."""
        return shown == self.plain if self.pattern is None else self.pattern.fullmatch(shown) is not None


def parse_glob(component: str) -> Glob:
    """Parse one component of a path; never fails, since a malformed glob is a plain name."""
    tokens = list(_tokens(component))
    choices = _choices(tokens) if any(special for _, special in tokens) else None
    if choices is None or prod(map(len, choices)) > MAX_ALTERNATIVES:
        return Glob(plain="".join(character for character, _ in tokens))
    patterns = (_regex([token for part in chosen for token in part]) for chosen in product(*choices))
    plain = "".join(character for character, _ in takewhile(lambda token: not token[1], tokens))
    return Glob(plain=plain, pattern=re.compile("|".join(patterns), re.DOTALL))


def _tokens(component: str) -> Iterator[Token]:
    """Yield the characters; one after a backslash is plain, and so is a backslash at the end."""
    kept, in_group = False, False
    for character in component:
        if kept or character != "\\":
            special = not kept and (character in "*?{" or (in_group and character in ",}"))
            in_group = character != "}" if special and character in "{}" else in_group
            yield character, special
            kept = False
        else:
            kept = True
    if kept:
        yield "\\", False


def _choices(tokens: list[Token]) -> list[list[list[Token]]] | None:
    """Return the alternatives of each part, one for a part outside groups; None if the glob is malformed."""
    found: list[list[list[Token]]] = [[[]]]
    in_group = False
    for character, special in tokens:
        match character if special else "":
            case "{" if in_group:
                return None
            case "{" | "}":
                in_group = character == "{"
                found.append([[]])
            case ",":
                found[-1].append([])
            case _:
                found[-1][-1].append((character, special))
    return None if in_group else found


def _regex(tokens: list[Token]) -> str:
    """Return a regular expression for plain characters, `?` and `*`."""
    runs = [""]
    for character, special in tokens:
        if special and character == "*":
            runs.append("")
        else:
            runs[-1] += "." if special else re.escape(character)
    if len(runs) == 1:
        return runs[0]
    # Atomic groups: what follows a star is matched at its first occurrence, which is always sufficient for globs. So
    # there is no backtracking, whose time an attacker could drive up by a name.
    first, *middle, last = runs
    return first + "".join(f"(?>.*?{run})" for run in middle if run) + ".*" + last
