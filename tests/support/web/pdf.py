"""The text of a PDF that Chromium has printed: its pages, title, outline and glyphs, without a PDF library.

Chromium writes objects and pages as they are, compresses streams by deflate, and gives every font a map to Unicode.
"""

import re
import zlib
from collections.abc import Iterator

_OBJECT = re.compile(rb"(\d+) 0 obj\n(.*?)\nendobj", re.DOTALL)
_STREAM = re.compile(rb"stream\r?\n(.*)\r?\nendstream", re.DOTALL)
_SHOWN = re.compile(rb"/(F\d+) [\d.]+ Tf|<([0-9A-F]+)> Tj|(ET)")


def objects(pdf: bytes) -> dict[int, bytes]:
    """Return the objects by their numbers, with streams as they are before compression."""
    return {int(found[1]): _inflated(found[2]) for found in _OBJECT.finditer(pdf)}


def pages(pdf: bytes) -> int:
    """Return the number of pages."""
    return sum(b"/Type /Page\n" in each for each in objects(pdf).values())


def outline(pdf: bytes) -> list[str]:
    """Return the titles of the outline."""
    found = (re.search(rb"/Title \(([^)]*)\)", each) for each in objects(pdf).values() if b"/Parent" in each)
    return [each[1].decode() for each in found if each is not None]


def text(pdf: bytes) -> str:
    """Return the text of all pages, without spaces between lines."""
    return "".join(_texts(objects(pdf)))


def _texts(parts: dict[int, bytes]) -> Iterator[str]:
    names = {name: int(number) for each in parts.values() for name, number in re.findall(rb"/(F\d+) (\d+) 0 R", each)}
    glyphs = {name: _glyphs(parts, number) for name, number in names.items()}
    for content in parts.values():
        font: dict[int, str] = {}
        for name, shown, _ in _SHOWN.findall(content) if b"\nBT\n" in content else ():
            if name:
                font = glyphs[name]
            codes = (int(shown[at : at + 4], 16) for at in range(0, len(shown), 4))
            yield "".join(font.get(code, "\N{REPLACEMENT CHARACTER}") for code in codes)


def _glyphs(parts: dict[int, bytes], font: int) -> dict[int, str]:
    found = re.search(rb"/ToUnicode (\d+) 0 R", parts[font])
    if found is None:
        return {}
    table, result = parts[int(found[1])], dict[int, str]()
    for kind, rows in re.findall(rb"begin(bfchar|bfrange)\n(.*?)\nend", table, re.DOTALL):
        for row in rows.splitlines():
            first, *others = (int(each, 16) for each in re.findall(rb"<([0-9A-F]{4})>", row))
            last, start = others if kind == b"bfrange" else (first, others[0])
            result |= {code: chr(start + code - first) for code in range(first, last + 1)}
    return result


def _inflated(content: bytes) -> bytes:
    found = _STREAM.search(content)
    return content if found is None or b"/FlateDecode" not in content else zlib.decompress(found[1])
