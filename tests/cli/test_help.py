"""`aclog help` and the manual pages: each flag, laid out for a terminal and in sound roff."""

import os
import re
import sys

import pexpect
import pytest

from aclog.cli.app import app
from aclog.cli.completion import candidates
from aclog.cli.help import command_page, command_pages, manual_name, manual_page
from aclog.cli.listing import ACCESSES, MORE, PANELS
from tests.support.cli.command import aclog


def test_a_page_has_what_the_command_does_its_flags_and_examples(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    out = aclog("help", "acls", "list").ok().out
    assert out.startswith("NAME\n       aclog acls list - List the ACLs")
    assert "SYNOPSIS\n       aclog acls list [OPTIONS] [SOURCE]\n" in out
    assert "\n       --resource-pattern-type TYPE\n" in out
    assert "EXAMPLES\n       aclog acls list --log DIR --topic pay.eu" in out
    assert "[cyan]" not in out
    prose = [line for line in out.splitlines() if "aclog acls list" not in line]
    assert max(map(len, prose)) <= 60


def test_a_group_lists_its_commands_and_no_words_are_all():
    assert "\n       list\n           List the ACLs" in aclog("help", "acls").ok().out
    everything = aclog("help").ok().out
    assert "\n       who-can\n" in everything
    assert "EXIT STATUS\n       0 success" in everything


def test_a_command_that_does_not_exist_is_refused_with_those_that_do():
    wrong = aclog("help", "acls", "lst")
    assert wrong.code == 2
    assert "aclog acls lst: no such command (did you mean list?): expected one of list, history, add" in wrong.err
    assert "has none below it" in aclog("help", "explain", "x").err


def test_a_manual_page_is_sound_roff():
    for page in command_pages(app):
        text = manual_page(page, "1.0", "2026-11-23")
        assert text.startswith(f'.TH "{manual_name(page).upper()}" 1'.replace("-", "\\-"))
        assert text.count("\\fB") == text.count("\\fR")
        for line in text.splitlines()[1:]:
            assert not re.match(r"'|\.(?!(TH|SH|B|PP|nf|fi|TP)\b)", line), line
            assert not re.search(r"(?<!\\)-", line.partition(" ")[2] if line.startswith(".") else line), line
        for group in page.groups:
            for flag in (flag for line in group.lines for flag in line.options):
                assert flag.replace("-", "\\-") in text


def test_a_group_refers_to_its_commands():
    page = manual_page(command_page(app, ("acls",)), "1.0", "2026-11-23")
    assert "\\fBaclog\\-acls\\-list\\fR(1)" in page


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_on_a_terminal_a_page_fits_it_and_goes_through_the_pager(tmp_path):
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho BEGIN; cat; echo END\n")
    pager.chmod(0o755)
    environment = {**os.environ, "TERM": "xterm", "ACLOG_PAGER": str(pager)}
    environment.pop("COLUMNS", None)
    child = pexpect.spawn(
        sys.executable, ["-m", "aclog", "help", "acls", "list"], env=environment, dimensions=(24, 50), timeout=300
    )
    lines = child.read().decode().replace("\r\n", "\n").splitlines()
    child.close()
    assert child.exitstatus == 0
    assert (lines[0], lines[1], lines[-1]) == ("BEGIN", "NAME", "END")
    names = ("       -", "       aclog acls list")  # which are not cut
    assert max(len(line) for line in lines if not line.startswith(names)) <= 50


@pytest.mark.parametrize(
    ("typed", "meant"), [("", "who-can"), ("who", "who-can"), ("acls h", "history"), ("check n", "no-public")]
)
def test_the_words_after_help_are_completed(typed, meant):
    *before, last = ["help", *typed.split(" ")]
    assert meant in [each.value for each in candidates(app, before, last).items]


PAGES = [page.words[1:] for page in command_pages(app)]


@pytest.mark.parametrize("words", PAGES, ids=" ".join)
def test_a_short_page_fits_a_window_and_names_every_flag(words, monkeypatch):
    """The request comes before what many commands share; only the complete page has the rest of the texts."""
    monkeypatch.setenv("COLUMNS", "80")
    short = aclog(*words, "--help").ok().out
    assert short.count("\n") < 60
    assert short.startswith(f"Usage: {' '.join(('aclog', *words))} ")
    assert "<bool>" not in short
    assert not re.search(r" $", short, re.MULTILINE)
    places = [short.find(f"\n{title}\n") for title in ("Examples", "Request", "Question", "State source", "Output")]
    assert [place for place in places if place > 0] == sorted(place for place in places if place > 0)
    complete = aclog(*words, "--help-all").ok().out
    options = {flag for group in command_page(app, words).groups for line in group.lines for flag in line.options}
    assert options <= set(complete.split())
    named = options - {flag for flag in options if flag.startswith("--no-") or flag == "-h"}
    assert named <= set(short.split())


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        ("report", ("-o --out FILE", "[required]")),
        ("who-can", (" --format VALUE",)),
        ("accesses usage", (" --format VALUE", " --accesses PATH")),
        ("accesses unused", (" --format VALUE", " --index DIR")),
        ("serve", ("aclog serve controller.properties --format-if-empty", "docs/configuration.md has a CONFIG")),
        ("accesses", ("`usage` also needs an access log; `unused` an index",)),
    ],
)
def test_a_short_page_describes_what_a_first_use_needs(words, texts, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    described = aclog(*words.split(), "--help").ok().out.partition("\nMore flags (")[0]
    assert all(text in described for text in texts), described


def test_an_example_stays_one_line_on_any_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert (
        "\n  aclog explain --log DIR --principal User:bob --operation WRITE --topic pay\n"
        in aclog("explain", "--help").out
    )


def test_the_list_of_commands_has_at_most_thirty_names():
    brief = [name for title, lines in PANELS.items() if title != MORE for name in lines]
    out = aclog("--help").ok().out
    assert len(brief) <= 30
    assert all(re.search(rf"(^| ) +{name}  ", out, re.MULTILINE) for name in brief)
    assert not any(re.search(rf"^ .* {name}  ", out, re.MULTILINE) for name in PANELS[MORE])
    everything = aclog("--help-all").ok().out
    assert all(re.search(rf"^│ {name} ", everything, re.MULTILINE) for lines in PANELS.values() for name in lines)


@pytest.mark.parametrize(("name", "former"), [(name, former) for name, (former, _) in ACCESSES.items()])
def test_a_former_name_is_the_same_command(name, former, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for flags in (("--log", "nowhere", "--accesses", "x", "--index", "y"), ("--nope",), ("--accesses", "absent.log")):
        new, old = aclog("accesses", name, *flags), aclog(former, *flags)
        assert old.code == new.code == 2
        assert old.err.replace(f"aclog {former}", f"aclog accesses {name}") == new.err
    assert aclog("help", former).ok().out == aclog("help", "accesses", name).ok().out
    assert former not in {each.value for each in candidates(app, [], former[:2]).items}
