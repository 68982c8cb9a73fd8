"""The one escaper of text for people."""


def printable(text: str) -> str:
    r"""Return a text for one line, with unprintable characters as Python escapes (`\x1b`, `\u202e`, `\n`).

    Names are chosen by clients: control characters (C0, C1, DEL) steer a terminal, line ends forge lines, and format
    characters (bidirectional ones among them) make one name look like another. Blanks other than a space, surrogates,
    and what Unicode has not assigned are escaped as well. Not for JSON, which has escapes of its own.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
