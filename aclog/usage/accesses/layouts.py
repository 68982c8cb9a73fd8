"""Layouts of text logs: what surrounds Kafka's message in a line, as a pattern in log4j's conversion language."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from functools import lru_cache
from typing import Final, NamedTuple

from attrs import evolve, field

from aclog.authorizer.audit import (
    AUDIT_LOGGER,
    MESSAGE,
    TIME_SIZE,
    ParsedLine,
    Reason,
    certain_end,
    has_cut_request,
    is_cut,
    is_headed,
    read_line,
    read_message,
    read_other,
)
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.usage.accesses.times import CLOCK, ISO, KNOWN_FORMATS, NUMBER, TimeFormat, epoch_micros, format_of, parse_iso

DEFAULT_PATTERN: Final = "[%d] %p %m (%c)%n"
"""Apache's layout of kafka-authorizer.log."""
LONGEST_AROUND: Final = 1 << 12
"""The longest text before or after a message, in characters."""
_MOST_TAILS: Final = 100
"""The ends of a message that are tried."""
_LONGEST_SEARCH: Final = 1 << 13
"""The longest line, in characters, of which several ends of its message are tried."""


class LayoutLine(NamedTuple):
    """A line divided by its layout."""

    time: str | None
    """The text of its time; None if the layout has none."""
    read: ParsedLine


@frozen(kw_only=True, cache_hash=True)
class Layout:
    """The text before and after a message.

    Both are regular expressions for Python and RE2; one has the group `t`, the time of the message: the nearest
    complete one before it, else the first one after it.
    """

    pattern: str
    before: str = field(repr=False)
    after: str = field(repr=False)
    time: TimeFormat | None = field(repr=False, eq=False)
    """None: the time of a message is not in its line."""
    zone: tzinfo | None = field(default=None, eq=False)
    """The zone that the pattern states for its time."""
    time_is_after: bool = False
    quote: str = ""
    """How a quoted message has a quotation mark: `""` as in CSV, a backslash before it, or `?` for an unknown way."""
    is_bare: bool = False
    """Whether a message ends where its text ends, although it has no words that end it (Kafka up to 2.3)."""

    def divide(self, line: str) -> LayoutLine | None:
        """Return the time and the message of a line; None if the text around its message is different."""
        at = line.find(MESSAGE)
        if not 0 <= at <= LONGEST_AROUND:
            return None
        head = _compiled(self.before).fullmatch(line[:at])
        if head is None:
            return None
        time = head["t"] if self.time is not None and not self.time_is_after else None
        level = head.groupdict().get("p")
        end = self.end(line[at:])
        if end is None:
            return None
        late, read = end
        return LayoutLine(late if self.time_is_after else time, read._replace(level=level) if level else read)

    def end(self, rest: str) -> tuple[str | None, ParsedLine] | None:
        """Return the time, if it is after the message, and the message that a text begins with; None: other text after.

        A text that can end a message at several places is read if only one of them makes an access.
        """
        if rest.count(MESSAGE) > 1:  # two messages, or a name that may be forged
            return None, ParsedLine(reason=Reason.AMBIGUOUS)
        if not self.after:
            return None, self._message(rest)
        after = _compiled(self.after)
        reads = dict[tuple[object, ...], tuple[str | None, ParsedLine]]()
        failed: tuple[str | None, ParsedLine] | None = None
        for number, tail in enumerate(_tails(after, rest)):
            if number == _MOST_TAILS or len(reads) > 1:
                return None, ParsedLine(reason=Reason.AMBIGUOUS)
            late = tail["t"] if self.time_is_after else None
            read = self._message(rest[: tail.start()], has_after=True)
            if read.reason is None:
                reads.setdefault(read[:7], (late, read))
            elif failed is None or read.reason is Reason.AMBIGUOUS:
                failed = (late, read)
        if len(reads) > 1 or (failed is not None and failed[1].reason is Reason.AMBIGUOUS):
            return None, ParsedLine(reason=Reason.AMBIGUOUS)
        return next(iter(reads.values()), failed)

    def _message(self, text: str, *, has_after: bool = False) -> ParsedLine:
        plain = text
        if _ENTITY.search(text):  # of XML or HTML, or a name with such a text
            return ParsedLine(reason=Reason.AMBIGUOUS)
        if self.quote == '""':
            if '"' in text.replace('""', "") or _ESCAPE.search(text):  # quoted in another way
                return ParsedLine(reason=Reason.AMBIGUOUS)
            plain = text.replace('""', '"')
        elif self.quote == "\\":
            if re.search(r'(?<!\\)(?:\\\\)*\\[^"\\]', text):  # an escape of another kind
                return ParsedLine(reason=Reason.AMBIGUOUS)
            plain = re.sub(r"\\(.)", r"\1", text)
        elif self.quote and any(character in text for character in "'\"\\"):
            return ParsedLine(reason=Reason.AMBIGUOUS)
        read = _read_short(plain) if len(plain) <= _LONGEST_CACHED else read_message(plain)
        is_open = not has_after and read.reason is None and read.request is None
        return ParsedLine(reason=Reason.TORN) if is_open and (not self.is_bare or is_cut(read)) else read


_LONGEST_CACHED: Final = 1 << 10
"""The longest message, in characters, of which the result is cached."""


@lru_cache(1 << 14)
def _read_short(text: str) -> ParsedLine:
    """Return a message: the same ones are between other threads and loggers."""
    return read_message(text)


_ENTITY: Final = re.compile(r"&(?:#\w{1,8}|[A-Za-z]{2,8});", re.ASCII)
_ESCAPE: Final = re.compile(r'\\["\\/u]')


@lru_cache(256)
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex, re.ASCII | re.DOTALL)


def _tails(after: re.Pattern[str], rest: str) -> Iterable[re.Match[str]]:
    """Yield each match of the text after a message that ends with the text."""
    start = max(len(rest) - LONGEST_AROUND, len(MESSAGE))
    first = after.search(rest, start)
    while first is not None:
        yield first
        if len(rest) > _LONGEST_SEARCH:
            return
        first = after.search(rest, first.start() + 1)


# A line of any layout.


@frozen(kw_only=True)
class Profile:
    """The layouts of a file."""

    layouts: tuple[Layout, ...] = ()
    is_stated: bool = False
    """Whether lines in other layouts are not read: the user has stated the layout."""

    @classmethod
    def of_pattern(cls, pattern: str) -> "Profile":
        """Return the profile of a pattern that the user has stated. Raises ConfigError: as compile_layout."""
        return cls(layouts=(compile_layout(pattern),), is_stated=True)

    def of_older(self) -> "Profile":
        """Return the profile for messages of Kafka up to 2.3, whose end only the end of their text proves."""
        return evolve(self, layouts=tuple(evolve(layout, is_bare=True) for layout in self.layouts))

    @property
    def is_default(self) -> bool:
        """Whether all lines are expected in Apache's layout."""
        return all(layout.pattern == DEFAULT_PATTERN for layout in self.layouts)

    def read(self, line: str, zone: tzinfo) -> "tuple[int | None, ParsedLine] | None":
        """Return the time (us since 1970) and the message of a line; None if its layout is unknown.

        The line may have any layout of the profile, or another one if its message ends by its own words.
        """
        clean = cleaned(line)
        failed: tuple[int | None, ParsedLine] | None = None
        for layout in self.layouts:
            if (read := _read_by(layout, clean, zone)) is not None:
                if read[1].reason is None:
                    return read
                failed = failed or read
        own = None if self.is_stated or (failed and failed[1].reason is not Reason.TORN) else layout_of(clean)
        return (None if own is None else _read_by(own, clean, zone)) or failed


def read_text_line(line: str, zone: tzinfo, profile: Profile) -> tuple[int | None, ParsedLine]:
    """Return the time (us since 1970) and the message of any line of a text log, or the reason why it has none."""
    torn, time = None, None
    if not profile.is_stated and is_headed(line):
        read = read_line(line[TIME_SIZE:])
        time = parse_iso(line[1:TIME_SIZE], zone)
        if read.reason is not Reason.TORN:
            return _timed(time, read)
        torn = read
    by_profile = profile.read(line, zone) if MESSAGE in line else None
    if by_profile is not None and (torn is None or by_profile[1].reason is None):
        return _timed(*by_profile)
    return (time, torn) if torn is not None else (None, ParsedLine(reason=read_other(line)))


def _timed(time: int | None, read: ParsedLine) -> tuple[int | None, ParsedLine]:
    return time, ParsedLine(reason=Reason.BAD_TIMESTAMP) if time is None and read.reason is None else read


_ANSI: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_MARK: Final = "\ufeff"


def cleaned(line: str) -> str:
    """Return a line without line end, byte order mark, NULs of a truncated file, and colours of a terminal."""
    text = line.rstrip("\n").removesuffix("\r")
    if text[:1] in {"\0", _MARK}:
        text = text.lstrip("\0").removeprefix(_MARK).lstrip("\0")
    if "\0" in text[: max(text.find(MESSAGE), 0)]:
        text = text[text.rindex("\0", 0, text.find(MESSAGE)) + 1 :]
    return _ANSI.sub("", text) if "\x1b" in text else text


def _read_by(layout: Layout, line: str, zone: tzinfo) -> tuple[int | None, ParsedLine] | None:
    divided = layout.divide(line)
    if divided is None:
        return None
    time = None if divided.time is None or layout.time is None else layout.time.parse(divided.time, layout.zone or zone)
    return time, divided.read


_STEPS: Final = (
    (
        r"Principal = [^ ]*(?: [^ ]+)*?(?= is (?:Allowed|Denied) )",
        "`Principal = TYPE:NAME`, then `is Allowed` or `is Denied`",
    ),
    (r" is (?:Allowed|Denied) [oO]peration = [A-Za-z_]+", "`operation = NAME`"),
    (r" from host = \S+", "`from host = ADDRESS`"),
    (r" on resource = [A-Za-z_]+:", "`on resource = TYPE:`"),
    (r".*? for request = \w+ with resourceRefCount = [0-9]+", "`for request = NAME with resourceRefCount = N`"),
    (r" based on rule (?:SuperUser|Default\w+|MatchingAcl\(.*\))", "`based on rule RULE`"),
)
"""The parts of a message with their descriptions."""
_STEPS_OF_ALL: Final = 4
"""How many of them older messages have as well."""


def stop_of(line: str, profile: Profile) -> tuple[int, str]:
    """Return the column, from 1, at which a line differs from a readable one, and what a readable one has there."""
    at = line.find(MESSAGE)
    if at < 0:
        return 1, "a message that begins with `Principal = `"
    patterns = [layout.pattern for layout in profile.layouts] or [DEFAULT_PATTERN]
    heads = [layout for layout in profile.layouts if _compiled(layout.before).fullmatch(cleaned(line[:at]))]
    if not heads and not is_headed(line):
        first = profile.layouts[0] if profile.layouts else compile_layout(DEFAULT_PATTERN)
        return _longest(first.before, line[:at]) + 1, f"the text before the message as in {patterns[0]!r}, with a time"
    position = at
    for number, (regex, expected) in enumerate(_STEPS):
        match = _compiled(regex).match(line[: at + LONGEST_AROUND], position)
        if match is None:
            may_end = number >= _STEPS_OF_ALL and " Operation = " in line
            return position + 1, "the end of the message, and the text after it" if may_end else expected
        position = match.end()
    return position + 1, f"the text after the message as in {patterns[0]!r}"


def _longest(regex: str, text: str) -> int:
    """Return how many characters of a text some line begins with that an expression describes."""
    for size in range(len(regex), 0, -1):
        try:
            part = _compiled(regex[:size])
        except re.error:
            continue
        match = part.match(text)
        if match is not None:
            return match.end()
    return 0


# Patterns, as PatternLayout of log4j 1 and 2 and of logback has them.


_CONVERSION: Final = re.compile(r"%(-?[0-9]+)?(?:\.-?[0-9]+)?([A-Za-z]+)((?:\{[^{}]*\})*)")
_KINDS: Final = {
    **dict.fromkeys(("d", "date"), "time"),
    **dict.fromkeys(("p", "le", "level"), "level"),
    **dict.fromkeys(("c", "lo", "logger"), "logger"),
    **dict.fromkeys(("m", "msg", "message"), "message"),
    **dict.fromkeys(("n", "ex", "throwable", "exception", "rEx", "rException", "xEx", "xException"), "end"),
    **dict.fromkeys(("xThrowable", "rootException", "nopex", "nopexception"), "end"),
    # What these print cannot be read back; they are here since a shorter name begins some of them, such as %m or %n.
    **dict.fromkeys(
        ("replace", "maxLen", "maxLength", "notEmpty", "varsNotEmpty", "variablesNotEmpty", "enc", "encode", "style",
         "highlight", "equals", "equalsIgnoreCase", "clr", "black", "red", "green", "yellow", "blue", "magenta", "cyan",
         "white"),
        "irreversible",
    ),
    **dict.fromkeys(
        ("t", "tn", "thread", "threadName", "T", "tid", "threadId", "tp", "threadPriority", "X", "mdc", "MDC", "x",
         "NDC", "L", "line", "F", "file", "M", "method", "l", "location", "C", "class", "r", "relative", "sn",
         "sequenceNumber", "pid", "processId", "marker", "markerSimpleName", "N", "nano", "u", "uuid", "K", "map",
         "MAP", "fqcn", "endOfBatch", "kvp", "property", "contextName", "cn", "hostName", "caller"),
        "text",
    ),
}  # fmt: skip
_LEVEL: Final = r"[A-Za-z]{3,7}"
LOGGER: Final = r"[A-Za-z0-9_.$-]*"
_ESCAPES: Final = {"\\n": "\n", "\\t": "\t", "\\r": "\r", "\\\\": "\\"}


class _Item(NamedTuple):
    kind: str
    """literal, time, level, logger, text or message."""
    text: str = ""
    """A literal's text."""
    format: TimeFormat | None = None
    zone: str = ""
    is_padded: bool = False


@lru_cache(256)
def compile_layout(pattern: str) -> Layout:
    """Return the layout of a pattern such as `[%d] %p %m (%c)%n`.

    Raises:
        ConfigError: an unknown or irreversible conversion, no message or two.

    """
    items = _items(pattern)
    messages = [at for at, item in enumerate(items) if item.kind == "message"]
    if len(messages) != 1:
        raise ConfigError(f"layout {pattern[:200]!r}: expected one %m, the message; such as {DEFAULT_PATTERN!r}")
    joined = [at for at, item in enumerate(items[1:]) if "literal" not in {item.kind, items[at].kind}]
    if any(items[at + 1].kind != "message" for at in joined):
        raise ConfigError(f"layout {pattern[:200]!r}: two fields run together: expected text between them")
    before, after = items[: messages[0]], items[messages[0] + 1 :]
    complete = [at for at, item in enumerate(before) if item.format is not None and item.format.is_complete]
    late = [at for at, item in enumerate(after) if item.format is not None and item.format.is_complete]
    time = before[complete[-1]] if complete else after[late[0]] if late else None
    return Layout(
        pattern=pattern,
        before=_regex(before, complete[-1] if complete else None),
        after=_after(after, late[0] if late and not complete else None),
        time=None if time is None else time.format,
        zone=_zone(time.zone, pattern) if time is not None and time.zone else None,
        time_is_after=bool(late and not complete),
        quote=_quote(before, after),
    )


def _quote(before: Sequence[_Item], after: Sequence[_Item]) -> str:
    """Return how a quotation mark in a message is written (Layout.quote), if the message is within a quoted text."""
    opening, closing = ("".join(item.text or " " for item in side) for side in (before, after))
    if '\\"' in opening or (opening.count("'") % 2 and "'" in closing):
        return "?"
    if opening.count('"') % 2 == 0 or '"' not in closing:
        return ""
    return "\\" if opening[: opening.rindex('"')].rstrip().endswith(("=", ":")) else '""'


def _zone(name: str, pattern: str) -> tzinfo:
    from aclog.snapshots.moments import parse_zone  # noqa: PLC0415 - few patterns state a zone

    try:
        return parse_zone(name)
    except ConfigError as error:
        raise ConfigError(f"layout {pattern[:200]!r}: {error}") from error


def _items(pattern: str) -> list[_Item]:
    items, position, literal = list[_Item](), 0, ""
    while position < len(pattern):
        two = pattern[position : position + 2]
        if two in _ESCAPES or two == "%%":
            literal += _ESCAPES.get(two, "%")
            position += 2
            continue
        if pattern[position] != "%":
            literal += pattern[position]
            position += 1
            continue
        match = _CONVERSION.match(pattern, position)
        name = None if match is None else _keyword(match[2])
        if match is None or name is None or _KINDS[name] == "irreversible":
            word = two if match is None else f"%{match[2]}"
            raise ConfigError(
                f"layout {pattern[:200]!r}: {word}: expected a conversion whose text can be read back: %d, %p, %c, %t, "
                "%X, %m, %n and other fields; %% for a per cent sign"
            )
        kind = _KINDS[name]
        end = match.end() if name == match[2] else match.start(2) + len(name)
        options = re.findall(r"\{([^{}]*)\}", match[3]) if name == match[2] else []
        position = end
        if kind == "end":
            continue
        if literal:
            items.append(_Item("literal", literal))
            literal = ""
        if kind == "time":
            zone = options[1] if len(options) > 1 else ""
            format_text = options[0] if options else ""
            inner, _, last = format_text.partition(", ")
            logback_zone = last if "/" in last or last in {"UTC", "GMT"} else ""
            time_format = format_of(inner if logback_zone else format_text)
            items.append(_Item(kind, format=time_format, zone=zone or logback_zone))
        else:
            items.append(_Item(kind, is_padded=match[1] is not None))
    literal = literal.rstrip("\r\n")
    return [*items, *([_Item("literal", literal)] if literal else [])]


def _keyword(word: str) -> str | None:
    """Return the conversion that a word begins with, the longest one: `%mfoo` is `%m` and a text."""
    return next((word[:size] for size in range(len(word), 0, -1) if word[:size] in _KINDS), None)


_ANY: Final = ".*?"
_MOST_ANY: Final = 2
"""Fields with blanks in them, before or after a message: the time for a line grows with a power of their number."""


def _regex(items: Sequence[_Item], time: int | None) -> str:
    regex = ""
    for at, item in enumerate(items):
        following = items[at + 1] if at + 1 < len(items) else None
        part = _of_item(
            item, following, "t" if at == time else "p" if item.kind == "level" and "(?P<p>" not in regex else ""
        )
        regex += "[^ ]*" if part == _ANY and regex.count(_ANY) == _MOST_ANY else part
    return regex


def _after(items: Sequence[_Item], time: int | None) -> str:
    regex = _regex(items, time).replace("(?P<p>", "(?:")
    return rf"{regex}\r?\Z" if items else ""


def _of_item(item: _Item, following: _Item | None, group: str) -> str:
    begin = f"(?P<{group}>" if group else "(?:"
    blanks = " *" if item.is_padded else ""
    if item.kind == "literal":
        return re.escape(item.text)
    if item.kind == "time":
        assert item.format is not None  # noqa: S101 - made so
        return f"{blanks}{begin}{item.format.regex}){blanks}"
    if item.kind == "level":
        return f"{blanks}{begin}{_LEVEL}){blanks}"
    if item.kind == "logger":
        return f"{blanks}{LOGGER}{blanks}"
    if following is None or following.kind != "literal":
        return _ANY
    return f"[^{re.escape(following.text[0])}]*" if following.text[0] != " " else _ANY


# Detection: the pattern of lines that begin and end alike around their messages.


_LEVELS: Final = "TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL"
_ANY_TIME: Final = "|".join(each.regex for each in KNOWN_FORMATS)
_TOKEN: Final = re.compile(
    "|".join(
        (
            *(rf"(?P<t{number}>(?<![0-9]){each.regex}(?![0-9A-Za-z]))" for number, each in enumerate(KNOWN_FORMATS)),
            rf"(?P<clock>(?<![0-9:]){CLOCK.regex}(?![0-9:]))",
            rf"(?P<number>(?<![\w.-]){NUMBER.regex}(?![\w.-]))",
            rf"(?P<level>\b(?:{_LEVELS}|{_LEVELS.lower()}|{_LEVELS.title()})\b)",
            rf"(?P<logger>(?<![\w.]){re.escape(AUDIT_LOGGER)}(?![\w.]))",
            r"(?P<bracket>\[[^\[\]\"]*\])",
            rf"(?P<word>(?:(?!(?<![0-9])(?:{_ANY_TIME}))[A-Za-z0-9_./@#+$-])+)",
            r"(?P<blanks> +)",
            r"(?P<other>.)",
        )
    ),
    re.ASCII | re.DOTALL,
)
_OPEN, _CLOSE = "([{", ")]}"
_MOST_SHAPES: Final = 8
_MOST_PARTS: Final = 4
_REMAINS: Final = ("is Allowed", "is Denied", " from host = ", " on resource = ", " for request = ", " based on rule ")


class _Token(NamedTuple):
    kind: str
    text: str


class _Shape(NamedTuple):
    """The tokens around a message, and how it ends."""

    before: tuple[_Token, ...]
    after: tuple[_Token, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """What all lines of the layout have in common."""
        return tuple(tuple(_kind(token) for token in side) for side in self)


def _kind(token: _Token) -> object:
    return token.kind if token.kind not in {"blanks", "other"} else token.text


def _tokens(text: str) -> tuple[_Token, ...]:
    tokens = list[_Token]()
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None and match.lastgroup is not None  # noqa: S101, PT018 - the last alternative has any character
        kind, token = match.lastgroup, match[0]
        if kind == "bracket" and any(each.kind not in {"word", "blanks", "other"} for each in _tokens(token[1:-1])):
            kind, token = "other", "["
        tokens.append(_Token(kind, token))
        position += len(token)
    return tuple(tokens)


def _is_closed(text: str) -> bool:
    """Return whether the text after a message is whole: each bracket and quotation mark that it opens is closed."""
    depth = Counter({each: text.count(each) for each in (*_OPEN, *_CLOSE)})
    return all(depth[opening] == depth[closing] for opening, closing in zip(_OPEN, _CLOSE, strict=True))


def shape_of(line: str, *, by_rule: bool = False) -> _Shape | None:
    """Return what surrounds the message of a line; None without a message whose end is certain."""
    at = line.find(MESSAGE)
    if not 0 <= at <= LONGEST_AROUND:
        return None
    rest = line[at:].rstrip("\r\n")
    if any(rest.count(part) > _MOST_PARTS for part in (" from host = ", " for request = ")):  # hostile
        return None
    end = _end_of(rest, by_rule=by_rule)
    if end is None or len(rest) - end > LONGEST_AROUND or not _is_closed(line[:at] + rest[end:]):
        return None
    before = line[:at]
    if any(part in side for part in (MESSAGE, *_REMAINS) for side in (before, rest[end:])):  # of another access
        return None
    return _Shape(_tokens(before), _tokens(rest[end:]))


def _end_of(rest: str, *, by_rule: bool) -> int | None:
    certain = certain_end(rest, by_rule=by_rule)
    if certain is not None:
        return certain
    if by_rule:
        return None
    return _end_by_logger(rest)


_BEFORE_LOGGER: Final = " ([{<|,;\"':="
_LEGAL_NAME: Final = re.compile(r" on resource = (?:Topic|Cluster):(?:LITERAL:)?[A-Za-z0-9._-]+")


def _end_by_logger(rest: str) -> int | None:
    """Return the end of an older message, whose name may be any text: before the logger, or after a topic's name."""
    logger = rest.rfind(AUDIT_LOGGER)
    if logger >= 0:
        return len(rest[:logger].rstrip(_BEFORE_LOGGER))
    if has_cut_request(rest):
        return None
    names = list(_LEGAL_NAME.finditer(rest))
    return names[0].end() if len(names) == 1 else None


def detect(lines: Iterable[str], *, rare: int = 0) -> list[Layout]:
    """Return the layouts of lines with a message, the most frequent first.

    `rare`: of so many lines, more than one must have a layout. A layout in which no message ends by its own words is
    one only if most lines have it: other such lines may be torn.
    """
    shapes: dict[tuple[object, ...], list[_Shape]] = {}
    olds = Counter[tuple[object, ...]]()
    count = 0
    for line in lines:
        shape = shape_of(line) if len(line) <= _LONGEST_SEARCH else None
        if shape is not None:
            count += 1
            shapes.setdefault(shape.key, []).append(shape)
            olds[shape.key] += certain_end(line[line.find(MESSAGE) :].rstrip("\r\n")) is None
    layouts = list[Layout]()
    for key, group in sorted(shapes.items(), key=lambda each: -len(each[1]))[:_MOST_SHAPES]:
        is_old = olds[key] == len(group)
        if (rare and len(group) * rare <= count - rare) or (is_old and 2 * len(group) <= count):
            continue
        layout = _layout_of(group)
        own = None if layout is None else evolve(layout, is_bare=is_old)
        if own is not None and own not in layouts:
            layouts.append(own)
    return layouts


RARE: Final = 50
"""Of so many lines of a sample, more than one must have a layout; otherwise they are read one by one."""


def layout_of(line: str) -> Layout | None:
    """Return the layout of a single line; None unless its message ends by its own words, and it has a time."""
    shape = shape_of(line, by_rule=True)
    if shape is None or _is_cut(shape.before):
        return None
    layout = _layout_of([shape])
    return layout if layout is not None and layout.time is not None else None


def _layout_of(group: Sequence[_Shape]) -> Layout | None:
    """Return the layout of lines of one shape; None if two fields run together in it."""
    try:
        return compile_layout(_pattern_of(group))
    except ConfigError:
        return None


def _is_cut(before: Sequence[_Token]) -> bool:
    """Return whether the nearest time before a message has lost its date."""
    times = [token.kind for token in before if token.kind == "clock" or token.kind[1:].isdigit()]
    return bool(times) and times[-1] == "clock"


def _pattern_of(group: Sequence[_Shape]) -> str:
    has_time = any(token.kind == "clock" or _is_time(token) for side in group[0] for token in side)
    sides = (
        "".join(_conversions([*zip(*side, strict=True)], has_time=has_time))
        for side in ([each.before for each in group], [each.after for each in group])
    )
    return f"{'%m'.join(sides)}%n"


def _is_time(token: _Token) -> bool:
    return token.kind.startswith("t") and token.kind[1:].isdigit()


_TIME_KEY: Final = re.compile(r"(?:^|[^A-Za-z])(?:ts|time|timestamp)[\"']? *[=:] *[\"']?\Z", re.IGNORECASE)
_ZONE: Final = re.compile(r"[A-Z]{2,5}|[ap]m|[A-Z][A-Za-z]+/[A-Z]\w+|[A-Z]{3}[+-]\d[\d:]*|[+-]\d[\d:]*", re.ASCII)
"""A zone by its name, or half of a day: a time with one is not read, since the hour is not certain."""


def _conversions(columns: Sequence[Sequence[_Token]], *, has_time: bool) -> Iterable[str]:
    """Yield the part of a pattern for each column of tokens."""
    for at, column in enumerate(columns):
        around = zip(*columns[at : at + 3], strict=True)
        if _is_time(column[0]) and at + 1 < len(columns) and any(map(_has_zone, around)):
            yield "%X"
            continue
        is_key = _TIME_KEY.search("".join(each[0].text for each in columns[max(at - 6, 0) : at])) is not None
        yield _conversion(column, numbers=has_time and not is_key, is_key=is_key)


_HAS_OFFSET: Final = re.compile(r"(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})\Z", re.ASCII)


def _has_zone(tokens: Sequence[_Token]) -> bool:
    """Return whether the tokens after a time, the first one, continue it."""
    time, first, *more = tokens
    if first.kind != "blanks":
        return first.kind == "word" and re.match(r"[+-]?\d|[A-Za-z]", first.text) is not None
    return _HAS_OFFSET.search(time.text) is None and any(
        each.kind == "word" and _ZONE.fullmatch(each.text) for each in more
    )


def _conversion(  # noqa: PLR0911 - one for each kind
    column: Sequence[_Token], *, numbers: bool, is_key: bool
) -> str:
    """Return the part of a pattern for one token of each line."""
    kind, text = column[0]
    if kind.startswith("t") and kind[1:].isdigit():
        time_format = KNOWN_FORMATS[int(kind[1:])]
        return "%d" if time_format is ISO else f"%d{{{time_format.name}}}"
    if kind == "clock":
        return "%d{ABSOLUTE}"
    if kind == "level":
        return "%p"
    if kind == "number" and not numbers and (is_key or all(_is_epoch(token.text) for token in column)):
        return f"%d{{{_EPOCHS.get(len(text.partition('.')[0]), 'EPOCH')}}}"
    if kind == "logger":
        return "%c"
    if kind == "bracket" and text != "[]":
        return "[%t]"
    is_one = all(token.text == text for token in column)
    if is_one and kind != "number" and not (len(column) < _FEW and any(map(str.isdigit, text))):
        return text.replace("%", "%%").replace("\\", "\\\\")
    return "%X"


def _is_epoch(text: str) -> bool:
    """Return whether a number is likely a time: one of ten digits may as well be log4j's ms since the start (`%r`)."""
    whole, _, fraction = text.partition(".")
    return epoch_micros(text) is not None and (len(whole) > _SECONDS_DIGITS or bool(fraction))


_SECONDS_DIGITS: Final = 10
_FEW: Final = 50
"""Lines in which a word with a digit may be the same by chance."""
_EPOCHS: Final = {10: "UNIX", 13: "UNIX_MILLIS"}
