"""Damages a file as people, editors and disks do."""

import re
from collections.abc import Callable
from random import Random

_PIECES = (
    *(b"null", b"~", b"[]", b"{}", b"[1]", b"{a: b}", b"1", b"1e999", b"true", b"''", b"*", b"'*'", b"-", b": ", b"? "),
    *(b"!!set", b"!Ref x", b"&a x", b"*a", b"<<: *a", b"|\n", b"---\n", b"...\n", b"0x", b"2001-01-01", b"{{ x }}"),
    *(b"\xff", b"\xef\xbb\xbf", b"\x00", b"\t", b"\xe2\x80\xa8", b"\xf0\x90\x80\x80", b"\\u0000", b"\r", b"#"),
    *(b"${", b"}", b'"', b"'", b"%", b"((((", b"for", b"User:", b",", b"`", b"9" * 5000, b"[" * 3000),
)


def damaged(content: bytes, random: Random) -> bytes:
    """Return a file with one to four damages."""
    for _ in range(random.choice((1, 1, 2, 4))):
        content = random.choice(_DAMAGES)(content, random)
    return content


def _flipped(content: bytes, random: Random) -> bytes:
    at = random.randrange(len(content) + 1)
    return content[:at] + bytes([random.randrange(256)]) + content[at + 1 :]


def _inserted(content: bytes, random: Random) -> bytes:
    at = random.randrange(len(content) + 1)
    return content[:at] + random.choice(_PIECES) + content[at:]


def _cut(content: bytes, random: Random) -> bytes:
    return content[: random.randrange(len(content) + 1)]


def _replaced_word(content: bytes, random: Random) -> bytes:
    words = list(re.finditer(rb"[\w.*:-]+", content))
    if not words:
        return content
    word = random.choice(words)
    return content[: word.start()] + random.choice([*_PIECES, random.choice(words)[0]]) + content[word.end() :]


def _without_line(content: bytes, random: Random) -> bytes:
    lines = content.split(b"\n")
    lines.pop(random.randrange(len(lines)))
    return b"\n".join(lines)


def _line_twice(content: bytes, random: Random) -> bytes:
    lines = content.split(b"\n")
    lines.insert(random.randrange(len(lines) + 1), random.choice(lines))
    return b"\n".join(lines)


def _line_indented(content: bytes, random: Random) -> bytes:
    lines = content.split(b"\n")
    at = random.randrange(len(lines))
    lines[at] = random.choice((b"", b" ", b"  ", b"- ", b"\t")) + lines[at].lstrip()
    return b"\n".join(lines)


_DAMAGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    _flipped,
    _inserted,
    _cut,
    _replaced_word,
    _without_line,
    _line_twice,
    _line_indented,
)
