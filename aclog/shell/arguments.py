"""Arguments of a command: signature, parsing, and help text in the format of argparse4j."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from enum import Enum

from attrs import field, frozen

from aclog.metalog.errors import ConfigError
from aclog.shell.words import Word

# A negative number is an argument, as in argparse4j; so is an age, such as -3d.
_LOOKS_LIKE_OPTION = re.compile(r"-(?!\d).+", re.DOTALL)
_HELP_COLUMN = 25
_HELP_WIDTH = 75


class Count(Enum):
    """How many words an argument takes."""

    ONE = "one"
    OPTIONAL = "none or one"
    ANY = "any number"
    SOME = "one or more"


@frozen(kw_only=True)
class Argument:
    """A positional argument: its name, how many words it takes, and its description."""

    name: str
    count: Count
    help: str

    @property
    def usage(self) -> str:
        """The argument as shown in the usage line."""
        forms = {
            Count.ONE: "{0}",
            Count.OPTIONAL: "[{0}]",
            Count.ANY: "[{0} [{0} ...]]",
            Count.SOME: "{0} [{0} ...]",
        }
        return forms[self.count].format(self.name)


@frozen(kw_only=True)
class Option:
    """A flag with a value, such as `--host H`."""

    flag: str
    value: str
    help: str


@frozen(kw_only=True)
class Signature:
    """The arguments and options of a command; only the last argument may take several words."""

    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()

    @property
    def usage(self) -> str:
        """The arguments as shown in the usage line."""
        options = [f"[{option.flag} {option.value}]" for option in self.options]
        return " ".join([*options, *(argument.usage for argument in self.arguments)])


@frozen(kw_only=True)
class Arguments:
    """The parsed words by name of the argument or flag of the option; absent ones have none."""

    given: Mapping[str, tuple[Word, ...]] = field(factory=dict)

    def all(self, name: str) -> tuple[Word, ...]:
        """Return every word of an argument."""
        return self.given.get(name, ())

    def one(self, name: str) -> Word | None:
        """Return the only word of an argument or option, or None."""
        words = self.all(name)
        return words[0] if words else None

    def text(self, name: str) -> str:
        """Return the text of the only word of an argument or option; empty if it is absent."""
        word = self.one(name)
        return word.text if word else ""


def parse_arguments(signature: Signature, words: Sequence[Word]) -> Arguments:
    """Assign each word to an argument or option. A lone `--` ends the options.

    Raises:
        ConfigError: too few or too many words, an unknown flag, or a flag without its value.

    """
    given, rest = _take_options(signature, words)
    for argument in signature.arguments:
        if not rest and argument.count in {Count.ONE, Count.SOME}:
            raise ConfigError("too few arguments")
        taken = len(rest) if argument.count in {Count.ANY, Count.SOME} else 1
        given[argument.name], rest = tuple(rest[:taken]), rest[taken:]
    if rest:
        raise ConfigError("unrecognized arguments: '{}'".format(" ".join(word.text for word in rest)))
    return Arguments(given=given)


def _take_options(signature: Signature, words: Sequence[Word]) -> tuple[dict[str, tuple[Word, ...]], list[Word]]:
    given: dict[str, tuple[Word, ...]] = {}
    rest: list[Word] = []
    flags = {option.flag for option in signature.options}
    remaining = iter(words)
    for word in remaining:
        flag, equals, value = word.text.partition("=")
        if word.text == "--":
            rest.extend(remaining)
        elif flag in flags:
            following = Word(text=value, glob=value) if equals else next(remaining, None)
            if following is None:
                raise ConfigError(f"argument {flag}: expected one argument")
            given[flag] = (following,)
        elif _LOOKS_LIKE_OPTION.fullmatch(word.text):
            raise ConfigError(f"unrecognized arguments: '{word.text}'")
        else:
            rest.append(word)
    return given, rest


def manual(name: str, description: str, signature: Signature) -> list[str]:
    """Return the lines of a command's help page."""
    page = [f"{name}: {description}", "", f"usage: {name} {signature.usage}".rstrip()]
    if signature.arguments:
        page += ["", "positional arguments:"]
        for argument in signature.arguments:
            page += described(argument.name, argument.help)
    if signature.options:
        page += ["", "named arguments:"]
        for option in signature.options:
            page += described(f"{option.flag} {option.value}", option.help)
    return page


def described(name: str, text: str, indent: int = 2) -> list[str]:
    """Return a name and its description, wrapped in the second column of a help page."""
    start = " " * indent + name
    lines = textwrap.wrap(text, _HELP_WIDTH - _HELP_COLUMN)
    if len(start) + 2 > _HELP_COLUMN:
        return [start, *(" " * _HELP_COLUMN + line for line in lines)]
    return [start.ljust(_HELP_COLUMN) + lines[0], *(" " * _HELP_COLUMN + line for line in lines[1:])]
