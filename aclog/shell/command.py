"""A command of the shell: its words, arguments and output, and the state of the session."""

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum, StrEnum
from typing import TextIO, TypeVar
from uuid import UUID

from attrs import evolve, field

from aclog.analysis.policy import G, Policy
from aclog.authorizer.acl import NO_ORIGINS, Origins, StandardAcl, StandardAclWithId, acl_text, code_name
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.authorizer.settings import (
    ALLOW_EVERYONE_CONFIG,
    SUPER_USERS_CONFIG,
    Generation,
    Settings,
    named_generation,
    parse_cidr_enabled,
)
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.metalog.codec import decode_record
from aclog.metalog.errors import ConfigError, printable
from aclog.metalog.primitives import uuid_text
from aclog.metalog.records import AccessControlEntryRecord
from aclog.metalog.values import define, frozen
from aclog.shell.tree import Directory, ImageOrigin, image_tree, mechanism_name, path_text
from aclog.snapshots.deciding_kafka import DecidingKafka
from aclog.snapshots.image import Image, StateSource
from aclog.snapshots.image_file import check_mapping
from aclog.snapshots.moments import Moment
from aclog.terminal.columns import OutputFormat
from aclog.terminal.notices import warn_if_stale
from aclog.terminal.output import colored, styled, warn

# Splitting of a command line into words, with quotes and backslashes.
#
# The syntax is that of Kafka's shell (jline): `'` and `"` are equivalent, and a backslash escapes the next character,
# also inside quotes. Unlike in Kafka's shell, a quoted character is never part of a glob: `'User:*'` is that very
# principal.


_QUOTES = "'\""
_GLOB_CHARACTERS = "*?{},\\"
_NEEDS_QUOTES = re.compile(r"[\s'\"*?{}\\]")


@frozen(kw_only=True)
class Word:
    """A word: its `text`, and the same as a `glob`, in which special characters that were quoted are escaped."""

    text: str
    glob: str


@frozen(kw_only=True)
class Split:
    """The words of a line, and the state at its end, which completion needs.

    `last_start` is the position of the last word, or the line's length if the line ends with a blank; `open_quote` is
    the quote that is not closed, or empty.
    """

    words: tuple[Word, ...]
    last_start: int
    open_quote: str


def split_line(line: str) -> Split:
    """Split a line; a quote that is not closed extends to the end of the line."""
    words: list[Word] = []
    characters: list[tuple[str, bool]] = []  # of the current word, each with whether it was quoted
    quote, escaped, start = "", False, -1
    for position, character in enumerate(line):
        # A word ends at the first blank that is neither quoted nor escaped; `start` is -1 between words.
        if start >= 0 and not quote and not escaped and character.isspace():
            words.append(_word(characters))
            characters, start = [], -1
        elif start >= 0 or not character.isspace():
            start = start if start >= 0 else position
            if escaped:
                characters.append((character, True))
                escaped = False
            elif character == "\\" and position + 1 < len(line):
                escaped = True
            elif character in (quote or _QUOTES):
                quote = "" if quote else character
            else:
                characters.append((character, bool(quote)))
    if start >= 0:
        words.append(_word(characters))
    return Split(words=tuple(words), last_start=start if start >= 0 else len(line), open_quote=quote)


def _word(characters: list[tuple[str, bool]]) -> Word:
    text = "".join(character for character, _ in characters)
    glob = "".join("\\" + c if literal and c in _GLOB_CHARACTERS else c for c, literal in characters)
    return Word(text=text, glob=glob)


def parse_line(line: str) -> tuple[Word, ...]:
    """Return the words of a line to run.

    Raises:
        ConfigError: a quote is not closed.

    """
    split = split_line(line)
    if split.open_quote:
        raise ConfigError(f"unclosed {split.open_quote} in the line")
    return split.words


def argument_word(text: str) -> Word:
    """Return a process argument as a word: nothing in it is quoted, so globs are active."""
    return Word(text=text, glob=text)


def quoted(text: str) -> str:
    """Return the text as one word of a line, quoted if necessary; `split_line` is the inverse."""
    if text and not _NEEDS_QUOTES.search(text):
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


# The state of a shell session.


@define(kw_only=True)
class ShellState:
    """The state that commands of a session share. Not thread-safe.

    `moment` is the moment that the session has travelled to; None is the newest state, which each command reads afresh.
    `screen_width` is the width of the terminal in characters, None without a terminal.
    """

    source: StateSource
    show_secrets: bool = False
    screen_width: int | None = None
    working_directory: tuple[str, ...] = ()
    moment: Moment | None = None
    history: list[str] = field(factory=list)
    done: bool = False
    origins: Origins = NO_ORIGINS
    """The locations of the newest state's ACLs."""
    premises: Callable[[AbstractSet[str]], Premises] = field(default=lambda _names: ALL_KNOWN)
    """Returns the unknown premises of a running cluster's settings if those properties are given."""
    _image: Image | None = field(default=None, init=False)
    _tree: Directory | None = field(default=None, init=False)

    def image(self) -> Image:
        """Return the image at the session's moment; that of a log which is followed is read again each time.

        Raises:
            MetadataError, OSError: the source is damaged or deleted.

        """
        if self._image is not None and (self.moment is not None or self.source.log is None):
            check_mapping(self._image.acls)
            return self._image
        # A source returns the same image until the log has grown, and raises if it can no longer be followed.
        return self._take(self.image_at(self.moment))

    def tree(self) -> Directory:
        """Return the tree of that image. Raises as `image`."""
        image = self.image()
        if self._tree is None:
            self._tree = image_tree(image, self._origin(), show_secrets=self.show_secrets)
        return self._tree

    def warn_of_age(self) -> None:
        """Warn on stderr if the newest state, which the session is at, may be out of date."""
        if self.moment is None:
            warn_if_stale(self.source.freshness())

    def image_at(self, moment: Moment | None) -> Image:
        """Return the image at another moment, the newest for None. Raises as `image`."""
        return self.source.image() if moment is None else self.source.image_at(moment)

    def go_to(self, moment: Moment | None) -> None:
        """Travel to a moment; if there is no such state, the session does not move. Raises as `image`."""
        self._take(self.image_at(moment))
        self.moment = moment

    @property
    def path(self) -> str:
        """The working directory, encoded."""
        return path_text(self.working_directory)

    def _take(self, image: Image) -> Image:
        # The tree caches listings of its image: it is dropped with it.
        if image is not self._image:
            self._image, self._tree = image, None
        return image

    def _origin(self) -> ImageOrigin:
        log = self.source.log
        high_watermark = log.high_watermark if log else None
        return ImageOrigin(source=self.source.name, high_watermark=high_watermark, acls=self.origins)


# Arguments of a command: signature, parsing, and help text in the format of argparse4j.


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

    values: Mapping[str, tuple[Word, ...]] = field(factory=dict)

    def all(self, name: str) -> tuple[Word, ...]:
        """Return every word of an argument."""
        return self.values.get(name, ())

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
    values, rest = _take_options(signature, words)
    for argument in signature.arguments:
        if not rest and argument.count in {Count.ONE, Count.SOME}:
            raise ConfigError("too few arguments")
        count = len(rest) if argument.count in {Count.ANY, Count.SOME} else 1
        values[argument.name], rest = tuple(rest[:count]), rest[count:]
    if rest:
        raise ConfigError("unrecognized arguments: '{}'".format(" ".join(word.text for word in rest)))
    return Arguments(values=values)


def _take_options(signature: Signature, words: Sequence[Word]) -> tuple[dict[str, tuple[Word, ...]], list[Word]]:
    values: dict[str, tuple[Word, ...]] = {}
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
            values[flag] = (following,)
        elif _LOOKS_LIKE_OPTION.fullmatch(word.text):
            raise ConfigError(f"unrecognized arguments: '{word.text}'")
        else:
            rest.append(word)
    return values, rest


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


# The options of commands that decide: the broker's settings.


_SUPER_USERS = Option(flag="--super-users", value="USERS", help="The broker's super.users, such as 'User:a;User:b'.")
_ALLOW_EVERYONE = Option(
    flag="--allow-everyone", value="BOOLEAN", help="The broker's allow.everyone.if.no.acl.found: true or false."
)
_VERSION = Option(flag="--kafka-version", value="V", help="The Kafka that decides, such as 4.3.1.")
_CIDR = Option(flag="--cidr", value="BOOLEAN", help="The same: true for Kafka 4.4, false for one up to 4.3.")

SETTINGS = (_SUPER_USERS, _ALLOW_EVERYONE, _VERSION, _CIDR)


def given_settings(arguments: Arguments) -> frozenset[str]:
    """Return the properties of brokers whose values are given."""
    options = {SUPER_USERS_CONFIG: _SUPER_USERS, ALLOW_EVERYONE_CONFIG: _ALLOW_EVERYONE}
    return frozenset(name for name, option in options.items() if arguments.text(option.flag))


def settings_of(arguments: Arguments) -> Settings:
    """Return the settings that are given; if they name no Kafka, the nodes of a state determine it.

    Raises:
        ConfigError: a super user without a colon, an unknown version of Kafka, an invalid --cidr, or one that
            contradicts the version.

    """
    version, ranges = arguments.text(_VERSION.flag), arguments.text(_CIDR.flag)
    has_ranges = parse_cidr_enabled(ranges or None, _CIDR.flag)
    named = named_generation(
        version or None,
        has_ranges if ranges else None,
        version_name=_VERSION.flag,
        ranges_text=f"{_CIDR.flag} {ranges}",
    )
    settings = Settings.of_texts(
        arguments.text(_SUPER_USERS.flag), arguments.text(_ALLOW_EVERYONE.flag), cidr=named is Generation.V4_4
    )
    return evolve(settings, is_kafka_stated=named is not None)


def policy_by(image: Image, settings: Settings, generation: Generation) -> Policy:
    """Return the policy of a state, as a generation of Kafka decides it."""
    own = settings.of_generation(generation)
    return Policy(image.acls.with_options(documented=False, cidr=own.cidr), own)


def lines_of_each(reports: Mapping[G, Sequence[str]], kafka: DecidingKafka) -> Iterator[str]:
    """Yield a report; one for each generation of Kafka that may decide, each named, if they differ."""
    first, *others = reports.values()
    if all(other == first for other in others):
        yield from first
        return
    warn(kafka.ambiguity())
    for number, (generation, lines) in enumerate(reports.items()):
        yield from [""] if number else []
        yield f"On {generation}:"
        yield from lines


# The option `--format` of commands that print changes: lines for people, or JSON lines.


FORMAT = Option(flag="--format", value="FORMAT", help="text (the default), or jsonl: one JSON object per line.")


def is_json(arguments: Arguments) -> bool:
    """Return whether JSON lines are requested. Raises ConfigError: another format."""
    form = arguments.text(FORMAT.flag) or OutputFormat.TEXT
    if form not in (OutputFormat.TEXT, OutputFormat.JSONL):
        raise ConfigError(f"--format {form}: expected text or jsonl")
    return form == OutputFormat.JSONL


# A command of the shell, and the lines that it prints.


@frozen
class Line:
    """A line of output without its terminator. Names and ACLs in it may contain any character, line feeds included.

    `failed` marks an error: in one-shot mode it goes to stderr and makes the exit code 1. `flush` is set if the next
    line may take long.
    """

    text: str
    failed: bool = False
    flush: bool = False


def complaint(text: str) -> Line:
    """Return an error line."""
    return Line(text, failed=True)


def _no_suggestions(_: ShellState, __: int) -> Iterable[str]:
    return ()


@frozen(kw_only=True)
class Command:
    """A command: its name, description and signature, and the function that runs it.

    `run` yields its output lazily and may raise any MetadataError. For completion, `path_arguments` means that the
    arguments are paths, and `suggestions(state, number)` returns the words that argument `number` may be.
    `at_prompt_only` marks a command that makes no sense as the only one of a process.
    """

    name: str
    description: str
    signature: Signature
    run: Callable[[ShellState, Arguments], Iterator[Line]]
    path_arguments: bool = False
    suggestions: Callable[[ShellState, int], Iterable[str]] = _no_suggestions
    at_prompt_only: bool = False
    notes: tuple[str, ...] = ()


# Printing of a command's output.


def print_lines(lines: Iterable[Line], output: TextIO, errors: TextIO) -> bool:
    """Print lines as they arrive, error lines to `errors`; return whether there were no errors.

    On a terminal unprintable characters are escaped, since names are chosen by clients and could contain escape
    sequences. In a pipe lines are unchanged, so that they equal the output of Kafka's shell.
    """
    good = True
    to_terminal = output.isatty()
    for line in lines:
        if line.failed:
            good = False
            output.flush()
            print(styled(printable(line.text), stream=errors, fg="red"), file=errors, flush=True)
        else:
            text = colored(printable(line.text), output) if to_terminal else line.text
            print(text, file=output, flush=line.flush)
    output.flush()
    return good


# The differences between two images: ACLs, SCRAM credentials, delegation tokens, features.


K = TypeVar("K")
_ACL = AccessControlEntryRecord


class Sign(StrEnum):
    """The kind of a difference."""

    ADDED = "+"
    REMOVED = "-"
    CHANGED = "~"


@frozen(kw_only=True)
class Difference:
    """One object that was added, removed or changed: its paths in the tree, and a line of text."""

    sign: Sign
    paths: tuple[tuple[str, ...], ...]
    text: str
    rule: StandardAclWithId | None = None
    """The ACL after it, or the removed one; None if it is of something else."""

    def to_dict(self) -> dict[str, object]:
        """Return this for JSON: the kind of change, its paths, the ACL if it is one, and the line of text."""
        path = next((path for path in self.paths if path[:2] == ("acl", "id")), self.paths[0])
        acl = {} if self.rule is None else {"acl": self.rule.to_dict()}
        return {"change": self.sign.name, "path": path_text(path), **acl, "text": self.text}

    def __str__(self) -> str:
        return f"{self.sign} {printable(self.text)}"


def differences(before: Image, after: Image, touched: Iterable[UUID] | None = None) -> Iterator[Difference]:
    """Yield all differences. `touched`, if given, are the ids of the only ACLs that may differ."""
    if before.acls is not after.acls:
        ids = _differing(before.acls, after.acls) if touched is None else touched
        yield from _rules(before.acls, after.acls, ids)
    if before.scram is not after.scram:
        yield from _scram(before, after)
    if before.tokens is not after.tokens:
        yield from _tokens(before, after)
    if before.features is not after.features:
        yield from _features(before, after)


def _differing(before: AclsImage, after: AclsImage) -> Iterator[UUID]:
    """Yield the ids of the ACLs that differ, found by comparing encoded records, without making ACL objects."""
    # Comparing bytes takes a fraction of the time of comparing a million pairs of objects.
    only_before, only_after = set(before.records()), set[bytes]()
    for value in after.records():
        if value in only_before:
            only_before.remove(value)
        else:
            only_after.add(value)
    ids = {record.id for record in map(decode_record, only_before | only_after) if isinstance(record, _ACL)}
    yield from ids


def _rules(before: AclsImage, after: AclsImage, ids: Iterable[UUID]) -> Iterator[Difference]:
    """Yield the differences of these ACLs; one that was recreated under another id is one change, not two."""
    removed: dict[UUID, StandardAcl] = {}
    added: dict[UUID, StandardAcl] = {}
    for rule_id in ids:
        old, new = before.get(rule_id), after.get(rule_id)
        if old != new and old is not None:
            removed[rule_id] = old
        if old != new and new is not None:
            added[rule_id] = new
    # By content: an ACL on both sides under different ids was recreated.
    new_ids = {acl: rule_id for rule_id, acl in added.items()}
    changes = []
    for rule_id, acl in removed.items():
        renewed = new_ids.get(acl)
        if renewed is not None:
            del added[renewed]
            was = f" (its id was {uuid_text(rule_id)})"
            changes.append(_rule(Sign.CHANGED, renewed, acl, was))
        elif rule_id in added:
            was = f" (was {acl_text(acl)})"
            changes.append(_rule(Sign.CHANGED, rule_id, added.pop(rule_id), was))
        else:
            changes.append(_rule(Sign.REMOVED, rule_id, acl))
    changes += (_rule(Sign.ADDED, rule_id, acl) for rule_id, acl in added.items())
    yield from sorted(changes, key=lambda difference: difference.paths)


def _rule(sign: Sign, rule_id: UUID, acl: StandardAcl, note: str = "") -> Difference:
    name = uuid_text(rule_id)
    rule = StandardAclWithId(id=rule_id, acl=acl)
    return Difference(sign=sign, paths=rule_paths(rule), text=f"/acl/id/{name} {acl_text(acl)}{note}", rule=rule)


def rule_paths(rule: StandardAclWithId) -> tuple[tuple[str, ...], ...]:
    """Return the paths of an ACL that has an id. The first one is the sort key: by resource."""
    name = uuid_text(rule.id) if rule.id else ""
    resource_type = code_name(ResourceType, rule.acl.resource_type)
    pattern_type = code_name(PatternType, rule.acl.pattern_type)
    return (
        ("acl", "resource", resource_type, pattern_type, rule.acl.resource_name, name),
        ("acl", "principal", rule.acl.principal, name),
        ("acl", "id", name),
        ("image", "acls", "byId", name),
    )


def _scram(before: Image, after: Image) -> Iterator[Difference]:
    old = {(record.name, record.mechanism): record for record in before.scram.records()}
    new = {(record.name, record.mechanism): record for record in after.scram.records()}
    for (user, code), sign in _signs(old, new):
        mechanism = mechanism_name(code)
        yield Difference(
            sign=sign,
            paths=(("scram", user, mechanism), ("image", "scram", mechanism, user)),
            text=path_text(("scram", user, mechanism)),
        )


def _tokens(before: Image, after: Image) -> Iterator[Difference]:
    old = {record.token_id: record for record in before.tokens.records()}
    new = {record.token_id: record for record in after.tokens.records()}
    for name, sign in _signs(old, new):
        record = new.get(name) or old[name]
        yield Difference(
            sign=sign,
            paths=(("delegationToken", name), ("image", "delegationToken", name)),
            text=f"{path_text(('delegationToken', name))} of {record.owner}",
        )


def _features(before: Image, after: Image) -> Iterator[Difference]:
    old = {record.name: record.feature_level for record in before.features.records()}
    new = {record.name: record.feature_level for record in after.features.records()}
    for name, sign in _signs(old, new):
        yield Difference(
            sign=sign,
            paths=(("features", name), ("image", "features", f"finalized_{name}"), ("image", "features", name)),
            text=f"{path_text(('features', name))} {old.get(name, 0)} to {new.get(name, 0)}",
        )


def _signs(old: Mapping[K, object], new: Mapping[K, object]) -> Iterator[tuple[K, Sign]]:
    for key in {**old, **new}:
        if key not in new:
            yield key, Sign.REMOVED
        elif key not in old:
            yield key, Sign.ADDED
        elif old[key] != new[key]:
            yield key, Sign.CHANGED
