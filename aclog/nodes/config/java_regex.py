r"""Java's regular expressions, translated to Python's, with Java's search and replace semantics.

Pure. What Python cannot express (`\p{..}`, nested character classes, inline flags) is refused rather than approximated.
"""

import re
from collections.abc import Callable, Iterator

from aclog.metalog.errors import ConfigError

_TERMINATORS = "\\n\\r\\x85\\u2028\\u2029"
# Java's $ also matches before a final line terminator, of which Java has more than Python.
_END = "(?=(?:\\r\\n|(?<!\\r)\\n|[\\r\\x85\\u2028\\u2029])?\\Z)"
_SAME_ESCAPES = frozenset("dDsSwWbBAntrfaxu123456789")
_CLASS_ESCAPES = frozenset("dDsSwWntrfaxu")
_TOKEN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)|\\k<(?P<backreference>[A-Za-z][A-Za-z0-9]*)>|\\(?P<escape>.)|\(\?<(?P<name>[A-Za-z]"
    r"[A-Za-z0-9]*)>|(?P<group>\(\?(?:[:=!>]|<[=!]|i:))|(?P<flags>\(\?.?)|\[(?P<class>\^?(?:\\.|[^\]\\])+)\]"
    r"|(?P<any>\.)|(?P<end>\$)|(?P<plain>[^\\\[]|\[|\\)",
    re.DOTALL,
)


def java_pattern(text: str) -> re.Pattern[str]:
    """Compile as java.util.regex.Pattern.compile does.

    Raises:
        ConfigError: Java would reject it, or Python has no equivalent.

    """
    try:
        start = re.match(r"\(\?i\)", text)
        # Java's \d, \w and \s match ASCII only unless told otherwise.
        flags = re.ASCII | (re.IGNORECASE if start else 0)
        return re.compile("".join(map(_translated, _TOKEN.finditer(text, start.end() if start else 0))), flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(f"the regular expression `{text}` is malformed: {error}") from error


def find_all(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield all matches as Matcher.find does: after an empty match, it continues one character further."""
    position = 0
    while position <= len(text):
        match = pattern.search(text, position)
        if match is None:
            return
        yield match
        position = match.end() + (match.end() == match.start())


def replace_all(pattern: re.Pattern[str], text: str, replacement: str) -> str:
    """Replace all matches as String.replaceAll does; ValueError if the replacement names an unknown group."""
    parts, position = [], 0
    for match in find_all(pattern, text):
        parts += [text[position : match.start()], _expanded(replacement, match)]
        position = match.end()
    return "".join((*parts, text[position:]))


def _expanded(replacement: str, match: re.Match[str]) -> str:
    parts, position = [], 0
    while position < len(replacement):
        character = replacement[position]
        position += 1
        if character == "\\":
            if position == len(replacement):
                raise ValueError("character to be escaped is missing")
            parts.append(replacement[position])
            position += 1
        elif character == "$":
            group, position = _reference(replacement, position, match.re)
            parts.append(match[group] or "")
        else:
            parts.append(character)
    return "".join(parts)


def _reference(replacement: str, position: int, pattern: re.Pattern[str]) -> tuple[int, int]:
    """Return the group that a `$` refers to, and where its name or number ends."""
    named = re.compile(r"\{([A-Za-z][A-Za-z0-9]*)\}").match(replacement, position)
    if named is not None:
        if named[1] not in pattern.groupindex:
            raise ValueError(f"No group with name {{{named[1]}}}")
        return pattern.groupindex[named[1]], named.end()
    digits = re.compile(r"[0-9]+").match(replacement, position)
    if digits is None:
        raise ValueError("Illegal group reference")
    end = position + 1  # the first digit always counts, further ones only while that group exists
    while end < digits.end() and int(replacement[position : end + 1]) <= pattern.groups:
        end += 1
    group = int(replacement[position:end])
    if group > pattern.groups:
        raise ValueError(f"No group {group}")
    return group, end


def _translated(token: re.Match[str]) -> str:
    kind, text = token.lastgroup or "plain", token[0]
    if kind == "flags" or text in ("[", "\\"):
        raise _unsupported(text)
    return _TRANSLATIONS[kind](token[kind], text)


def _escape(value: str, text: str) -> str:
    if value in "zZ":
        return "\\Z" if value == "z" else _END
    if value.isalnum() and value not in _SAME_ESCAPES:
        raise _unsupported(text)
    return text


def _class(value: str, text: str) -> str:
    """Translate a character class; nested classes are refused, since Python reads them as plain characters."""
    parts = []
    for part in re.findall(r"\\.|[^\\]", value, re.DOTALL):
        escaped = part[1:]
        if part == "[" or (escaped.isalnum() and escaped not in _CLASS_ESCAPES):
            raise _unsupported(text)
        parts.append(f"\\{part}" if part in "&|~" else part)
    if "&&" in value or value == "^":
        raise _unsupported(text)
    return f"[{''.join(parts)}]"


def _unsupported(text: str) -> ConfigError:
    return ConfigError(f"`{text}` is not supported in regular expressions")


_TRANSLATIONS: dict[str, Callable[[str, str], str]] = {
    "quoted": lambda value, _: re.escape(value),
    "backreference": lambda value, _: f"(?P={value})",
    "name": lambda value, _: f"(?P<{value}>",
    "escape": _escape,
    "class": _class,
    "any": lambda _, __: f"[^{_TERMINATORS}]",
    "end": lambda _, __: _END,
    "group": lambda value, _: value,
    "plain": lambda value, _: value,
}
