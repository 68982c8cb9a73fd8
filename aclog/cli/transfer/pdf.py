"""PDF of an HTML document, printed by a browser of this machine: no network, a new profile, bounded time.

The document is ours, without scripts and addresses; the browser also resolves no name and connects to no host. It runs
in its sandbox, except as root, for whom Chromium has none.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from aclog.cli.signals import ending_interrupts
from aclog.metalog.errors import ConfigError, printable
from aclog.terminal.output import note

VARIABLE = "ACLOG_BROWSER"
PATIENCE_S = 120.0
"""The longest time that a browser takes."""
_NAMES = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    *("microsoft-edge", "microsoft-edge-stable", "msedge"),
)
_APPLICATIONS = tuple(
    f"/Applications/{name}.app/Contents/MacOS/{name}" for name in ("Google Chrome", "Chromium", "Microsoft Edge")
)
"""Where macOS has them, outside of the PATH."""
_FLAGS = (
    "--headless",
    "--no-pdf-header-footer",
    "--generate-pdf-document-outline",
    # No host, no proxy, no services of its maker.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-domain-reliability",
    "--disable-breakpad",
    # Nothing of another profile, and no first run.
    "--disable-extensions",
    "--disable-default-apps",
    "--no-first-run",
    "--no-default-browser-check",
    "--use-mock-keychain",
    "--password-store=basic",
    "--disable-gpu",
    "--disable-dev-shm-usage",
)
_FOREIGN = ("CHROMIUM_FLAGS", "CHROMIUM_USER_FLAGS", "DBUS_SESSION_BUS_ADDRESS")
"""Variables with which a desktop changes the flags, or reaches the browser."""
_START, _END = b"%PDF-", b"%%EOF"
_LONGEST_HOME = 56
"""Characters of a directory for temporary files: the path of a socket in it has 46 more, of at most 103."""
_LAST, _LONGEST_LINE = 10_000, 200
"""Bytes of stderr that are read from its end, and characters of a line."""


def find_browser(given: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """Return the path of the browser that prints: `given`, else that of ACLOG_BROWSER, else a known one.

    Raises:
        ConfigError: it is not on this machine.

    """
    for flag, name in (("--browser", given), (VARIABLE, environment.get(VARIABLE) or None)):
        if name is not None:
            program = shutil.which(name)
            if program is None:
                raise ConfigError(f"{flag} {printable(name[:200])}: no such program: expected Chromium, Chrome or Edge")
            return str(Path(program).absolute())
    # An entry that is no absolute path would be a program of the current directory.
    path = os.pathsep.join(each for each in os.get_exec_path() if Path(each).is_absolute())
    known = (*(shutil.which(name, path=path) for name in _NAMES), *map(shutil.which, _APPLICATIONS))
    found = next(filter(None, known), None)
    if found is None:
        raise ConfigError(
            "a PDF is printed by a browser, and there is no Chromium, Chrome or Edge on the PATH: write --out "
            f"FILE.html and print it in a browser, or pass --browser PROGRAM (or {VARIABLE})"
        )
    return found


def pdf_of(html: str, browser: str, patience_s: float = PATIENCE_S) -> bytes:
    """Return a document as PDF, in the document's style for print.

    The document, the profile and the PDF are in a directory of this user alone, which is removed.

    Raises:
        ConfigError: the browser fails, does not end in time, or prints no PDF.
        OSError: it cannot be run, or the files cannot be written.

    """
    is_root = os.geteuid() == 0
    # A process of the browser may outlive it for a moment, and write into its profile.
    scratch = tempfile.TemporaryDirectory(prefix="aclog-report-", ignore_cleanup_errors=True)
    # The browser is in a session of its own: a signal that ends this process would leave it, and the files.
    with ending_interrupts(), scratch as name:
        home = Path(name)
        document, out, errors = home / "report.html", home / "report.pdf", home / "stderr"
        document.write_text(html, "utf-8", "backslashreplace")
        command = (
            browser,
            *_FLAGS,
            *(("--no-sandbox",) if is_root else ()),
            f"--user-data-dir={home / 'profile'}",
            f"--print-to-pdf={out}",
            document.as_uri(),
        )
        with errors.open("wb") as stderr:
            code = _run(command, home, stderr.fileno(), patience_s, browser)
        data = out.read_bytes() if out.is_file() else b""
        if code != 0 or not data.startswith(_START) or _END not in data[-1024:]:
            raise _failed(browser, f"{_exit_text(code)}: {_last_line(errors)}")
    if is_root:
        note("the browser printed without its sandbox, which it does not have as root")
    return data


def _run(command: tuple[str, ...], home: Path, stderr: int, patience_s: float, browser: str) -> int:
    """Run a browser to its end, with its processes; return the exit code. Raises as `pdf_of`."""
    environment = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    environment |= dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"), str(home))
    if len(str(home)) <= _LONGEST_HOME:
        environment["TMPDIR"] = str(home)
    process = subprocess.Popen(  # noqa: S603 - the user's browser
        command,
        cwd=home,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        start_new_session=True,
    )
    try:
        return process.wait(patience_s)
    except subprocess.TimeoutExpired:
        raise _failed(browser, f"not at its end within {patience_s:g} s") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _failed(browser: str, problem: str) -> ConfigError:
    return ConfigError(
        f"{printable(browser)}: printed no PDF, {problem}: expected Chromium, Chrome or Edge as --browser, or write "
        "--out FILE.html and print it in a browser"
    )


def _exit_text(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"ended by signal {-code}"


def _last_line(errors: Path) -> str:
    """Return the line of stderr that states why Chromium gave up, or else the last one."""
    text = errors.read_bytes()[-_LAST:].decode(errors="replace")
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    last = next((each for each in lines if ":FATAL:" in each), lines[-1] if lines else "nothing on stderr")
    return printable(last[:_LONGEST_LINE])
