"""`aclog report --out audit.pdf`: the report that a real Chromium prints, and browsers that fail."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from unicodedata import normalize

import pytest
from playwright.sync_api import sync_playwright

from aclog.cli.transfer import pdf
from aclog.metalog.errors import ConfigError
from tests.support.builders.week import WEEK
from tests.support.cli.command import aclog
from tests.support.processes.waiting import SECONDS, wait_until
from tests.support.web.chromium import working_program
from tests.support.web.pdf import outline, pages, text

LOG, ACCESSES = WEEK / "log", WEEK / "accesses.jsonl"
_SENT = ("TCP_CONNECT", "TCP_CONNECT_ATTEMPT", "HOST_RESOLVER_MANAGER_JOB", "DNS_TRANSACTION", "SOCKET_BYTES_SENT")
"""Events of Chromium's network log that begin when it resolves a name, connects or sends."""


class Blocks(HTMLParser):
    """The text of cells, paragraphs and headings of a document."""

    def __init__(self, document):
        super().__init__()
        self.blocks, self._in_block = [], False
        self.feed(document)

    def handle_starttag(self, tag, attrs):
        if tag in ("td", "th", "p", "h1", "h2"):
            self._in_block = True
            self.blocks.append("")

    def handle_endtag(self, tag):
        self._in_block = self._in_block and tag not in ("td", "th", "p", "h1", "h2")

    def handle_data(self, data):
        if self._in_block:
            self.blocks[-1] += data


def solid(words):
    return re.sub(r"\s", "", normalize("NFKC", words))


@pytest.fixture(scope="module")
def chromium():
    with sync_playwright() as playwright:
        return working_program(playwright)


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """The directory in which a PDF is made, and nothing else."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def program(folder, *lines):
    path = folder / "browser"
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)
    return path


@pytest.mark.tier("test")
def test_chromium_prints_the_report(tmp_path, scratch, chromium, monkeypatch):
    for name, value in chromium.environment.items():
        monkeypatch.setenv(name, value)
    log = tmp_path / "network.json"
    monkeypatch.setenv(pdf.VARIABLE, str(program(tmp_path, f'exec "{chromium.path}" --log-net-log="{log}" "$@"')))
    aclog("report", LOG, "--out", tmp_path / "week.html", "--accesses", ACCESSES).ok()
    said = aclog("report", LOG, "--out", tmp_path / "week.pdf", "--accesses", ACCESSES).ok()
    assert "week.pdf: " in said.err
    printed = (tmp_path / "week.pdf").read_bytes()
    assert 2 <= pages(printed) <= 20
    document = (tmp_path / "week.html").read_text()
    heads = re.findall(r"<h[12][^>]*>([^<]*)</h", document)
    assert sorted(map(solid, outline(printed))) == sorted(map(solid, heads))  # a long one is broken into lines
    words = solid(text(printed))
    blocks = [solid(each) for each in Blocks(document).blocks if "Z" not in each]  # but for the time of the report
    assert len(blocks) > 100
    assert [each for each in blocks if each not in words] == []
    assert f"1/{pages(printed)}" in words
    assert not re.findall(rb"/URI|/JavaScript|/Launch", printed)
    assert stat.S_IMODE((tmp_path / "week.pdf").stat().st_mode) == stat.S_IMODE((tmp_path / "week.html").stat().st_mode)
    assert list(scratch.iterdir()) == []
    network = json.loads(re.sub(r",\s*$", "]}", log.read_text()))
    kinds = {number: name for name, number in network["constants"]["logEventTypes"].items()}
    assert set(_SENT) & set(kinds.values())
    assert {kinds[each["type"]] for each in network["events"]} & set(_SENT) == set()


def test_the_document_and_the_profile_are_private_and_removed(tmp_path, scratch, monkeypatch):
    monkeypatch.setenv("CHROMIUM_FLAGS", "--load-extension=/tmp/x")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    lines = (
        'for each in "$@"; do echo "$each"; done > "$OUT"',
        'env > "$OUT.env"; pwd > "$OUT.pwd"; stat -c %a . > "$OUT.mode"; cat report.html > "$OUT.html"',
        'for each in "$@"; do case "$each" in --print-to-pdf=*) printf "%%PDF-1.4 %%%%EOF" > "${each#*=}";; esac; done',
    )
    out = tmp_path / "seen"
    monkeypatch.setenv("OUT", str(out))
    browser = program(tmp_path, *lines)
    aclog("report", LOG, "-o", tmp_path / "a.pdf", "--sections", "numbers", "--browser", browser).ok()
    assert (tmp_path / "a.pdf").read_bytes() == b"%PDF-1.4 %%EOF"
    home = (tmp_path / "seen.pwd").read_text().strip()
    flags = out.read_text().splitlines()
    assert home.startswith(str(scratch))
    assert f"--user-data-dir={home}/profile" in flags
    assert {"--headless", "--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND"} < set(flags)
    assert "--no-sandbox" not in flags
    assert flags[-1] == f"file://{home}/report.html"
    assert (tmp_path / "seen.mode").read_text() == "700\n"
    assert "Access report: " in (tmp_path / "seen.html").read_text()
    environment = (tmp_path / "seen.env").read_text()
    assert f"HOME={home}\n" in environment
    assert "CHROMIUM_FLAGS" not in environment
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (("echo cannot open display >&2; exit 3",), "exit code 3: cannot open display"),
        (("exit 0",), "exit code 0: nothing on stderr"),
        (('kill -9 "$$"',), "ended by signal 9"),
        (('for each in "$@"; do case "$each" in --print*) echo x > "${each#*=}";; esac; done',), "exit code 0"),
        (("sleep 60 & sleep 60",), "not at its end within 0.2 s"),
    ],
)
def test_a_browser_that_fails_is_one_line_and_leaves_nothing(tmp_path, scratch, lines, problem):
    browser = program(tmp_path, *lines)
    patience = 0.2 if "sleep" in lines[0] else pdf.PATIENCE_S
    with pytest.raises(ConfigError, match=re.escape(f"browser: printed no PDF, {problem}")) as raised:
        pdf.pdf_of("<p>text", str(browser), patience)
    assert str(raised.value).endswith("write --out FILE.html and print it in a browser")
    assert list(scratch.iterdir()) == []


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_browser_and_leaves_nothing(tmp_path, scratch, number):
    begun = tmp_path / "begun"
    browser = program(tmp_path, f'echo "$$" > {begun}.part; mv {begun}.part {begun}; exec sleep 600')
    command = [sys.executable, "-m", "aclog", "report", str(LOG), "--out", str(tmp_path / "a.pdf")]
    command += ["--sections", "numbers", "--browser", str(browser)]
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests under nohup ignore it, and so would the command
    process = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(scratch)}, stderr=subprocess.DEVNULL)
    signal.signal(signal.SIGHUP, before)
    with process:
        wait_until(begun.exists, "the browser's start")
        process.send_signal(number)
        assert process.wait(SECONDS) in (130, -signal.SIGINT)
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)
    assert list(scratch.iterdir()) == []
    assert not (tmp_path / "a.pdf").exists()


def test_a_failure_keeps_the_former_report(tmp_path, scratch):
    path = tmp_path / "a.pdf"
    path.write_bytes(b"former")
    failed = aclog("report", LOG, "-o", path, "--sections", "numbers", "--browser", program(tmp_path, "exit 1"))
    assert failed.code == 2
    assert len(failed.err.splitlines()) == 1
    assert path.read_bytes() == b"former"


def test_without_a_browser_the_line_has_the_next_step(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(pdf, "_APPLICATIONS", ())
    monkeypatch.delenv(pdf.VARIABLE, raising=False)
    failed = aclog("report", LOG, "-o", tmp_path / "a.pdf")
    assert failed.code == 2
    assert "write --out FILE.html and print it in a browser, or pass --browser PROGRAM" in failed.err
    monkeypatch.setenv(pdf.VARIABLE, "no-such-browser")
    assert "ACLOG_BROWSER no-such-browser: no such program" in aclog("report", LOG, "-o", tmp_path / "a.pdf").err
    wrong = aclog("report", LOG, "-o", tmp_path / "a.html", "--browser", "chromium")
    assert (wrong.code, "--browser: only with --out FILE.pdf" in wrong.err) == (2, True)


def test_a_browser_is_that_of_the_flag_the_variable_or_the_path(tmp_path, monkeypatch):
    known = tmp_path / "google-chrome"
    known.write_text("#!/bin/sh\n")
    known.chmod(0o755)
    other = program(tmp_path)
    monkeypatch.setenv("PATH", f".{os.pathsep}{tmp_path}")
    assert pdf.find_browser(None, {}) == str(known)
    assert pdf.find_browser(None, {pdf.VARIABLE: str(other)}) == str(other)
    assert pdf.find_browser(str(known), {pdf.VARIABLE: str(other)}) == str(known)
    monkeypatch.setenv("PATH", ".")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pdf, "_APPLICATIONS", ())
    with pytest.raises(ConfigError, match="no Chromium, Chrome or Edge on the PATH"):
        pdf.find_browser(None, {})
