"""An animation of a terminal and of the console: `make terminal-animation` draws it from what they print and show.

The commands are typed on one terminal, whose lines appear as the commands print them; then the console's page covers
the terminal. It is SVG with CSS alone, so that an <img> plays it: no script, nothing of another host. It plays three
times and rests on the terminal with all answers, which is also all that a reader with reduced motion sees.
"""

import re
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen
from playwright.sync_api import ViewportSize, expect, sync_playwright

from tests.docs.recorded import estate
from tests.docs.terminal_picture import ALL, PICTURES, ROOT, drawn
from tests.support.web.chromium import launch
from tests.support.web.console import ConsoleProcess
from tests.support.web.pictures import STEADY, smaller

PATH = PICTURES / "tour.svg"
COMMANDS = tuple(picture for picture in ALL if picture.name in ("why", "review"))
CONSOLE = "aclog console log"
_PAGE = "/why?principal=User:reports&operation=READ&type=TOPIC&name=orders"
"""The page of the console with the request of `aclog why`."""
_PORT = 8080
"""The console's own port; a picture is taken on a free one."""
SECONDS = 24.0
TIMES = 3
_KEY, _PRINTED, _READ = 0.05, 0.2, 4.0
"""Seconds per typed character, until a command prints, and until the next command."""
_WIDTH, _HEIGHT, _SCALE = 1000, 510, 1.2
"""The window of the console, in CSS pixels, and the pixels of its picture per CSS pixel."""
_TITLE_BAR, _ROW, _COLUMN = 40, 24.4, 12.2
"""Measures of the terminal, in units of the drawing."""
_PROMPT = 2
"""Characters before a command line."""
_LINE = re.compile(r'<text class="tour-r\d+" x="([\d.]+)"[^>]*? clip-path="url\(#tour-line-(\d+)\)">([^<]*)</text>')


@frozen(kw_only=True)
class Line:
    """A line of the terminal: what is drawn, and when it appears."""

    number: int
    drawing: str
    columns: int
    """Characters of a command line that is typed; 0 of what a command prints."""
    start: float
    """Seconds since the beginning."""


def run_console() -> tuple[str, bytes]:
    """Return what the console prints, and its page as PNG, in dark colors."""
    with tempfile.TemporaryDirectory() as folder, estate(Path(folder)), sync_playwright() as playwright:
        size: ViewportSize = {"width": _WIDTH, "height": _HEIGHT}
        with ConsoleProcess("--log", "log") as console, launch(playwright) as browser:
            page = browser.new_page(viewport=size, device_scale_factor=_SCALE, color_scheme="dark")
            page.goto(f"{console.url}{_PAGE}")
            expect(page.locator("main").get_by_text("DENIED").first).to_be_visible()
            page.evaluate("document.activeElement.blur()")
            page.evaluate(STEADY, [folder, "/srv"])
            picture = smaller(page.screenshot())
        return console.printed.replace(str(console.port), str(_PORT)), picture


def lines_of(svg: str) -> Iterator[Line]:
    """Yield the lines of a drawn terminal, with the times at which they appear."""
    parts: dict[int, list[re.Match[str]]] = {}
    for text in _LINE.finditer(svg):
        if text[3].strip():
            parts.setdefault(int(text[2]), []).append(text)
    now = -_READ + 0.5
    for number, texts in parts.items():
        drawing = re.sub(r' clip-path="[^"]*"', "", "".join(text[0] for text in texts))
        is_typed = texts[0][3] == "$&#160;"
        now += _READ if is_typed else 0.03
        columns = sum(len(re.sub(r"&[^;]*;", " ", text[3])) for text in texts) if is_typed else 0
        yield Line(number=number, drawing=drawing, columns=columns, start=now)
        now += columns * _KEY + (_PRINTED if is_typed else 0)


def animated(svg: str, page: bytes) -> str:
    """Return a drawn terminal as an animation that ends with a page of the console."""
    lines = list(lines_of(svg))
    found = re.search(r'viewBox="0 0 (\d+) ([\d.]+)"', svg)
    assert found is not None
    width, height = float(found[1]), float(found[2])
    inside = f'x="2" y="{_TITLE_BAR}" width="{width - 4:g}" height="{height - _TITLE_BAR - 3:g}"'
    shown = "".join(f'<g class="line l{line.number}">{line.drawing}</g>\n' for line in lines)
    typed = "".join(
        f'<g class="typing t{line.number}"><g transform="translate({_PROMPT * _COLUMN:g} {line.number * _ROW:g})"><g>'
        f'<rect class="cover" y="1.5" width="{line.columns * _COLUMN:g}" height="{_ROW}"/>'
        '<rect class="cursor" y="3" width="11" height="21"/></g></g></g>\n'
        for line in lines
        if line.columns
    )
    data = f"data:image/png;base64,{b64encode(page).decode()}"
    address = f"http://127.0.0.1:{_PORT}{_PAGE.partition('?')[0]}"
    console = (
        f'<g class="console"><rect class="cover" x="100" y="4" width="{width - 200:g}" height="32"/>'
        f'<text class="tour-title" fill="#c5c8c6" text-anchor="middle" x="{width / 2:g}" y="27">{address}</text>'
        f'<image {inside} preserveAspectRatio="xMidYMin slice" href="{data}"/></g>'
    )
    chrome, matrix = svg.index("<rect fill="), svg.index('<g class="tour-matrix">')
    window = svg[chrome:matrix]
    box = f'<rect width="{width - 20:g}" height="{height - 50:g}"/>'
    clip = f'<defs><clipPath id="tour-clip-terminal">{box}</clipPath></defs>'
    classes = "".join(re.findall(r"\.tour-r\d+ \{[^}]*\}\n?", svg))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">\n'
        "<title>aclog why, aclog review and the page of a request in the console</title>\n"
        f"<style>\n{_BASE}{classes}{_motion(lines)}</style>\n"
        f"{clip}\n{window}<g class='tour-matrix'>\n{shown}{typed}</g></g>\n{console}\n</svg>\n"
    )


_BASE = """.tour-matrix { font: 20px Fira Code, monospace; }
.tour-title { font: bold 18px arial, sans-serif; }
.cover { fill: #292929; } .cursor { fill: #c5c8c6; }
.typing, .console { opacity: 0; }
"""


def _motion(lines: list[Line]) -> str:
    """Return the style of the animation: each element appears and vanishes, without a transition."""
    rules = [f".line, .typing, .typing g g, .console {{ animation: {SECONDS:g}s step-end {TIMES}; }}\n"]
    rules += (_appears(f"l{each.number}", each.start) for each in lines)
    for each in lines:
        if each.columns:
            end = each.start + each.columns * _KEY
            rules.append(_appears(f"t{each.number}", each.start, end))
            keys = each.columns - _PROMPT
            rules.append(
                f".t{each.number} g g {{ animation-name: k{each.number}; }}\n@keyframes k{each.number} {{ "
                f"{_percent(each.start)} {{ transform: none; animation-timing-function: steps({keys}); }} "
                f"{_percent(end)}, 100% {{ transform: translateX({keys * _COLUMN:g}px); }} }}\n"
            )
    rules.append(_appears("console", lines[-1].start + 1.2))
    return f"@media (prefers-reduced-motion: no-preference) {{\n{''.join(rules)}}}\n"


def _appears(name: str, start: float, end: float = SECONDS) -> str:
    """Return the style of what is seen between two times, in seconds."""
    last = f"100% {{ opacity: {int(end == SECONDS)}; }}"
    last = last if end == SECONDS else f"{_percent(end)}, {last}"
    seen = f"0% {{ opacity: 0; }} {_percent(start)} {{ opacity: 1; }} {last}"
    return f".{name} {{ animation-name: {name}; }}\n@keyframes {name} {{ {seen} }}\n"


def _percent(seconds: float) -> str:
    return f"{100 * seconds / SECONDS:.3f}%"


def main() -> None:
    """Draw the animation anew."""
    printed, page = run_console()
    answers = [(picture.line, picture.output("--color", "always")) for picture in COMMANDS]
    PATH.write_text(animated(drawn("aclog", "tour", [*answers, (CONSOLE, printed)]), page), "utf-8")
    sys.stdout.write(f"{PATH.relative_to(ROOT)}: {PATH.stat().st_size / 1000:.0f} kB\n")


if __name__ == "__main__":
    main()
