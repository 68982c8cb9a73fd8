"""Chromium to test with: that of the machine, playwright's own, or Debian's packages unpacked under build/.

`python -m tests.support.web.chromium` fetches it if there is none, once; nothing is installed.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from attrs import field, frozen
from playwright.sync_api import Browser, Playwright, expect, sync_playwright

from tests.support.processes.debian_packages import libraries, unpack

ROOT = Path(__file__).parents[3]
HOME = ROOT / "build" / "browser"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_UNPACKED = HOME / "usr" / "lib" / "chromium" / "chromium"
_ADVICE = (
    "tests of the console drive Chromium, and apt-get cannot fetch it: install chromium, "
    "or run .venv/bin/playwright install --with-deps chromium"
)
PATIENCE_MS = 120_000
"""How long what is expected of a page, or done there, may take: Playwright's own limits are for idle machines."""
_FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>/usr/share/fonts</dir><dir>{home}/usr/share/fonts</dir><cachedir>{home}/fonts</cachedir>
<alias><family>system-ui</family><prefer><family>DejaVu Sans</family></prefer></alias>
<alias><family>sans-serif</family><prefer><family>DejaVu Sans</family></prefer></alias>
<alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
<match target="pattern"><test qual="all" name="family" compare="not_eq"><string>monospace</string></test>
<edit name="family" mode="append_last"><string>DejaVu Sans</string></edit></match>
</fontconfig>
"""
# As little as can be of what a browser does besides: no services of its maker, no first-run pages.
_FLAGS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--force-color-profile=srgb",
)


class NoBrowserError(Exception):
    """There is no Chromium that starts."""


@frozen(kw_only=True)
class Program:
    """A Chromium, and the environment that it needs."""

    path: str
    environment: dict[str, str] = field(factory=dict)

    def starts(self) -> bool:
        """Whether it is there, with all its libraries."""
        if not Path(self.path).exists():
            return False
        environment = {**os.environ, **self.environment}
        return (
            subprocess.run([self.path, "--version"], env=environment, capture_output=True, check=False).returncode == 0
        )


def working_program(playwright: Playwright) -> Program:
    """Return the first Chromium that starts. Raises NoBrowserError: none does."""
    on_path = [Program(path=path) for path in map(shutil.which, _NAMES) if path]
    own = Program(path=playwright.chromium.executable_path)
    for each in (*on_path, own, _unpacked()):
        if _starts(each.path, tuple(each.environment.items())):
            return each
    raise NoBrowserError("there is no Chromium that starts: `make test` fetches one")


def launch(playwright: Playwright) -> Browser:
    """Start Chromium, headless. Raises NoBrowserError: there is none."""
    expect.set_options(timeout=PATIENCE_MS)
    program = working_program(playwright)
    return playwright.chromium.launch(
        executable_path=program.path, env={**os.environ, **program.environment}, args=list(_FLAGS)
    )


def make_ready() -> None:
    """Fetch Chromium, unless one is here. Exits with a word on what to install if that cannot be done."""
    if HOME.exists():
        _write_fonts()
    with sync_playwright() as playwright:
        try:
            launch(playwright).close()
        except NoBrowserError:
            if not unpack(HOME, "--download-only", "--reinstall", "install", "chromium", "fonts-dejavu-core"):
                sys.exit(_ADVICE)
            _write_fonts()
            _starts.cache_clear()
            try:
                launch(playwright).close()
            except NoBrowserError:
                sys.exit(_ADVICE)


def _write_fonts() -> None:
    """Tell the unpacked Chromium which fonts there are, and which of them stand for the families of style sheets."""
    (HOME / "fonts.conf").write_text(_FONTS.format(home=HOME), encoding="utf-8")


def _unpacked() -> Program:
    environment = {"LD_LIBRARY_PATH": libraries(HOME), "FONTCONFIG_FILE": str(HOME / "fonts.conf")}
    return Program(path=str(_UNPACKED), environment=environment)


@cache
def _starts(path: str, environment: tuple[tuple[str, str], ...]) -> bool:
    return Program(path=path, environment=dict(environment)).starts()


if __name__ == "__main__":
    make_ready()
