r"""The one escaper of what steers a terminal, forges a line or makes a name look like another.

Which characters these are is said once: all that Unicode does not call printable (C0, C1, DEL, line ends, format
characters such as bidirectional ones, blanks other than a space, surrogates, and what is not assigned).
"""

from collections.abc import Callable


def printable(text: str) -> str:
    r"""Return a text for one line, with unprintable characters as Python escapes (`\x1b`, `\u202e`, `\n`).

    Names are chosen by clients. Not for JSON, which has escapes of its own: `printable_json`.
    """
    return _escaped(text, lambda character: ascii(character)[1:-1])


def printable_json(text: str) -> str:
    r"""Return JSON on one line with the same characters in its strings as JSON escapes (`\u001b`, `\u202e`).

    It is the same value: outside of strings JSON has none of them, but for line ends, which `text` must not have. A
    lone surrogate stays as it is: it is no text, and writing it as UTF-8 fails.
    """
    return _escaped(text, _json_escape)


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    return text if text.isprintable() else "".join(each if each.isprintable() else escape(each) for each in text)


def _json_escape(character: str) -> str:
    if "\ud800" <= character <= "\udfff":
        return character
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[begin : begin + 4]}" for begin in range(0, len(units), 4))
