"""Chromium to test with: that of the machine, playwright's own, or Debian's packages unpacked under build/.

`python -m tests.support.web.chromium` fetches it if there is none, once; nothing is installed.
"""

from playwright.sync_api import Browser, Playwright, expect, sync_playwright

from tests.support.web.programs import BUILD, Kind, Program

_KIND = Kind(
    title="Chromium",
    names=("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    packages=("chromium", "fonts-dejavu-core"),
    home=BUILD / "browser",
    unpacked=BUILD / "browser" / "usr" / "lib" / "chromium" / "chromium",
    advice="tests of the console drive Chromium, and apt-get cannot fetch it: install chromium, "
    "or run .venv/bin/playwright install --with-deps chromium",
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


def working_program(playwright: Playwright) -> Program:
    """Return the first Chromium that starts. Raises NoBrowserError: none does."""
    own = Program(path=playwright.chromium.executable_path)
    unpacked = _KIND.of_packages(FONTCONFIG_FILE=str(_KIND.home / "fonts.conf"))
    return _KIND.working((own, unpacked))


def launch(playwright: Playwright) -> Browser:
    """Start Chromium, headless. Raises NoBrowserError: there is none."""
    expect.set_options(timeout=PATIENCE_MS)
    program = working_program(playwright)
    return playwright.chromium.launch(
        executable_path=program.path, env=dict(program.whole_environment), args=list(_FLAGS)
    )


def make_ready() -> None:
    """Fetch Chromium, unless one is here. Exits with a word on what to install if that cannot be done."""
    if _KIND.home.exists():
        _write_fonts()
    with sync_playwright() as playwright:
        _KIND.make_ready(lambda: launch(playwright).close(), prepare=_write_fonts)


def _write_fonts() -> None:
    """Tell the unpacked Chromium which fonts there are, and which of them stand for the families of style sheets."""
    (_KIND.home / "fonts.conf").write_text(_FONTS.format(home=_KIND.home), encoding="utf-8")


if __name__ == "__main__":
    make_ready()
