"""Path resolution: from a typed path with `.`, `..` and globs to nodes."""

import re
from collections.abc import Iterator
from itertools import product, takewhile
from math import prod
from typing import TypeAlias

from aclog.metalog.values import frozen
from aclog.shell.command import ShellState, Word
from aclog.shell.tree import Directory, Node, decode_name, encode_name, path_text

# Globs of Kafka's shell (GlobComponent): `*`, `?`, `{a,b}`, and `\` to escape a character.
#
# A glob is one component of a path and is matched against encoded names. Groups do not nest; a malformed glob is a
# plain name. Matching takes linear time for any name.


MAX_ALTERNATIVES = 256
"""A glob whose groups expand to more alternatives is treated as malformed."""

Token: TypeAlias = tuple[str, bool]
"""A character, and whether it is special."""


@frozen(kw_only=True)
class Glob:
    """One component of a path: either a plain name (`pattern` is None), or a pattern.

    `plain` is the name, or the characters before the first special one: the prefix of every match.
    """

    plain: str
    pattern: re.Pattern[str] | None = None

    def matches(self, name: str) -> bool:
        """Return whether the glob matches an encoded name."""
        return name == self.plain if self.pattern is None else self.pattern.fullmatch(name) is not None


def parse_glob(component: str) -> Glob:
    """Parse one component of a path; never fails, since a malformed glob is a plain name."""
    tokens = list(_tokens(component))
    choices = _choices(tokens) if any(special for _, special in tokens) else None
    if choices is None or prod(map(len, choices)) > MAX_ALTERNATIVES:
        return Glob(plain="".join(character for character, _ in tokens))
    patterns = (_regex([token for part in parts for token in part]) for parts in product(*choices))
    plain = "".join(character for character, _ in takewhile(lambda token: not token[1], tokens))
    return Glob(plain=plain, pattern=re.compile("|".join(patterns), re.DOTALL))


def _tokens(component: str) -> Iterator[Token]:
    """Yield the characters; one after a backslash is plain, and so is a backslash at the end."""
    escaped, in_group = False, False
    for character in component:
        if escaped or character != "\\":
            special = not escaped and (character in "*?{" or (in_group and character in ",}"))
            in_group = character != "}" if special and character in "{}" else in_group
            yield character, special
            escaped = False
        else:
            escaped = True
    if escaped:
        yield "\\", False


def _choices(tokens: list[Token]) -> list[list[list[Token]]] | None:
    """Return the alternatives of each part, one for a part outside groups; None if the glob is malformed."""
    choices: list[list[list[Token]]] = [[[]]]
    in_group = False
    for character, special in tokens:
        match character if special else "":
            case "{" if in_group:
                return None
            case "{" | "}":
                in_group = character == "{"
                choices.append([[]])
            case ",":
                choices[-1].append([])
            case _:
                choices[-1][-1].append((character, special))
    return None if in_group else choices


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
    # Atomic groups: the part after a star is matched at its first occurrence, which is always sufficient for globs. So
    # there is no backtracking, whose time an attacker could drive up by a name.
    first, *middle, last = runs
    return first + "".join(f"(?>.*?{run})" for run in middle if run) + ".*" + last


# Path resolution: from a typed path with `.`, `..` and globs to the nodes that it matches.


HERE = Word(text=".", glob=".")


@frozen(kw_only=True)
class Location:
    """A node, and the bare names on the way to it from the root."""

    names: tuple[str, ...]
    node: Node

    @property
    def shown_name(self) -> str:
        """The last component of its path, encoded; `/` for the root."""
        return encode_name(self.names[-1]) if self.names else "/"

    @property
    def path(self) -> str:
        """Its absolute path, encoded."""
        return path_text(self.names)


def find_target(state: ShellState, target: Word) -> Iterator[Location]:
    """Yield the locations that a command's path argument matches, lazily."""
    return resolve(state.tree(), state.working_directory, target.glob)


def target_name(target: Word, location: Location) -> str:
    """Return the name of a location in messages: the path as typed, or its own path if a glob was typed."""
    is_glob = any(parse_glob(component).pattern for component in target.glob.split("/"))
    return location.path if is_glob else target.text


def resolve(root: Directory, working_directory: tuple[str, ...], target: str) -> Iterator[Location]:
    """Yield every location that a path matches, lazily, in the order of their names.

    Each component of `target` is a glob; a path that does not begin with `/` starts at the working directory. `.` and
    `..` are removed before anything is looked up, as in Kafka's shell.
    """
    return _descend(Location(names=(), node=root), path_globs(working_directory, target))


def path_globs(working_directory: tuple[str, ...], target: str) -> list[Glob]:
    """Return the components of the absolute path of `target`, without `.` and `..`."""
    globs = [] if target.startswith("/") else [Glob(plain=encode_name(name)) for name in working_directory]
    for component in target.split("/"):
        if component == "..":
            del globs[-1:]
        elif component not in {"", "."}:
            globs.append(parse_glob(component))
    return globs


def _descend(location: Location, components: list[Glob]) -> Iterator[Location]:
    if not components:
        yield location
        return
    if not isinstance(location.node, Directory):
        return
    for name in _matching(location.node, components[0]):
        child = location.node.child(name)
        if child is not None:  # a plain name may not exist
            yield from _descend(Location(names=(*location.names, name), node=child), components[1:])


def _matching(directory: Directory, glob: Glob) -> Iterator[str]:
    if glob.pattern is None:
        # A plain name is looked up and not listed: a directory may have a million entries.
        name = decode_name(glob.plain)
        if name is not None:
            yield name
        return
    for name in directory.names(common_prefix(glob.plain)):
        if glob.matches(encode_name(name)):
            yield name


def common_prefix(name: str) -> str:
    """Return the part of an encoded name's beginning that bare names share: all before the first encoded character."""
    return name.partition("%")[0]


def children(directory: Directory) -> Iterator[tuple[str, Node]]:
    """Yield the children of a directory with their names."""
    for name in directory.names(""):
        child = directory.child(name)
        if child is not None:  # Kafka's find and tree stop if a listed child cannot be looked up; here the rest follows
            yield name, child
