r"""Globs as Kafka's shell has them (GlobComponent): `*`, `?`, `{a,b}`, and `\` before a character to be taken as it is.

A glob stands for one component of a path and is held against the names as they are shown (encoded). Groups do not
nest; a glob that is malformed is a plain name.
"""

import re

from attrs import frozen


@frozen(kw_only=True)
class Glob:
    """One component of a path: either a plain name (`pattern` is None), or a pattern.

    `plain` is the name, or the characters before the first special one: what every match begins with.
    """

    plain: str
    pattern: re.Pattern[str] | None = None

    def matches(self, shown: str) -> bool:
        """Whether a name, as it is shown, is meant."""
        return shown == self.plain if self.pattern is None else self.pattern.fullmatch(shown) is not None


def parse_glob(component: str) -> Glob:
    """Read one component of a path; never fails, since a malformed glob is a plain name."""
    return _pattern(component) or Glob(plain="".join(character for character, _ in _characters(component)))


def _pattern(component: str) -> Glob | None:
    """The pattern, or None for a plain name: no special character, or groups that nest or do not end."""
    regex, plain, group, special = "", "", False, False
    for character, is_plain in _characters(component):
        part = re.escape(character)
        if not is_plain and character == "*":
            part = "" if regex.endswith(".*") else ".*"
        elif not is_plain and character == "?":
            part = "."
        elif not is_plain and character == "{":
            if group:
                return None
            part, group = "(?:", True
        elif not is_plain and character == "," and group:
            part = "|"
        elif not is_plain and character == "}" and group:
            part, group = ")", False
        elif not special:
            plain += character
        special = special or part != re.escape(character)
        regex += part
    if group or not special:
        return None
    return Glob(plain=plain, pattern=re.compile(regex, re.DOTALL))


def _characters(component: str) -> list[tuple[str, bool]]:
    """The characters, each with whether a backslash keeps it plain; a backslash at the end is itself."""
    found: list[tuple[str, bool]] = []
    position = 0
    while position < len(component):
        kept = component[position] == "\\" and position + 1 < len(component)
        position += kept
        found.append((component[position], kept))
        position += 1
    return found
