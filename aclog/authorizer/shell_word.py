"""Texts as words of a POSIX shell's command line, safe to paste."""

from shlex import quote

_PLAIN_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", "'": "\\'"}


def shell_word(text: str) -> str | None:
    r"""Return the text quoted as one word, all of it visible; None if no argument of a process can hold it.

    Unprintable characters are octal bytes in `$'...'` (bash, zsh, ksh, POSIX 2024): hexadecimal escapes differ between
    shells in how many digits they take. A NUL ends an argument, and a lone surrogate has no bytes.
    """
    if text.isprintable():
        return quote(text)
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        return None
    return f"$'{''.join(map(_escaped, text))}'"


def _escaped(character: str) -> str:
    if character in _PLAIN_ESCAPES:
        return _PLAIN_ESCAPES[character]
    # An interactive bash expands `!` inside of $'...', too.
    if character.isprintable() and character != "!":
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode())
