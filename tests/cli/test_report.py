"""`aclog report`: its claims beside the commands that it names, and names that would be markup."""

import hashlib
import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path

import pytest

import aclog as library
from tests.support.builders.hostile_names import NAMES
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl
from tests.support.builders.week import WEEK
from tests.support.cli.command import aclog
from tests.support.sources.files_of_rules import ONE_RULE, write_files

LOG, ACCESSES = WEEK / "log", WEEK / "accesses.jsonl"


class Document(HTMLParser):
    """Tags, attributes and text of a document."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.codes, self.text, self._in_code = [], [], [], "", False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "code":
            self.codes.append("")
        self._in_code = tag == "code"

    def handle_endtag(self, tag):
        self._in_code = False

    def handle_data(self, data):
        self.text += data
        if self._in_code:
            self.codes[-1] += data


def written(path, *words):
    aclog("report", *words, "--out", path).ok()
    return Document(path.read_text()) if path.suffix == ".html" else path.read_text()


def tables(page):
    """The rows of each table of Markdown, below its head."""
    return [
        [tuple(cell.replace("\\", "") for cell in line.strip("| ").split(" | ")) for line in block.splitlines()[2:]]
        for block in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE)
    ]


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "week.html"
    return written(path, LOG, "--accesses", ACCESSES, "--super-users", "User:admin")


def test_each_command_line_runs_and_means_the_reported_state(html):
    lines = [line for line in html.codes if "PRINCIPAL" not in line and "sha256sum" not in line]
    assert len(lines) > 12
    for line in dict.fromkeys(lines):
        name, *words = shlex.split(line)
        result = aclog(*words)
        assert (name, result.code in (0, 1)) == ("aclog", True), result
        assert "--as-of 40" in line


def test_numbers_are_those_of_the_commands(tmp_path):
    page = written(tmp_path / "week.md", LOG, "--sections", "numbers")
    commands = [line.strip("`") for line in page.splitlines() if line.startswith("`aclog query")]
    facts, numbers, *counts = tables(page)
    [row] = [json.loads(line) for line in aclog(*shlex.split(commands[0])[1:], "--format", "jsonl").ok().lines]
    assert [int(value) for _, value in numbers] == list(row.values())
    for command, rows in zip(commands[1:], counts, strict=True):
        listed = [tuple(map(str, json.loads(each).values())) for each in
                  aclog(*shlex.split(command)[1:], "--format", "jsonl").ok().lines]  # fmt: skip
        assert rows == listed
    command = next(line for line in page.splitlines() if line.startswith("The digest")).split("`")[1].split(" | ")[0]
    lines = sorted(line.encode() for line in aclog(*shlex.split(command)[1:]).ok().lines)
    assert dict(facts)["SHA-256 of the ACLs"] == hashlib.sha256(b"".join(line + b"\n" for line in lines)).hexdigest()
    assert dict(facts)["End offset"] == "40"


def test_the_matrix_is_what_principals_can(tmp_path):
    page = written(tmp_path / "week.md", LOG, "--sections", "access")
    heads = [
        each.replace("\\", "") for each in re.findall(r"^\| principal \| (.*) \|$", page, re.MULTILINE)[0].split(" | ")
    ]
    authorizer = library.open_log(LOG).image().authorizer()
    rows = {name: cells for name, *cells in (line.split("|")[1:-1] for line in page.splitlines() if "|" in line)}
    rows = {name.strip(): [cell.strip() for cell in cells] for name, cells in rows.items()}
    topics = [head.removeprefix("TOPIC ") for head in heads if head.startswith("TOPIC ")]
    assert {"orders*", "payments.*"} <= set(topics)
    for operation, letter in (("READ", "R"), ("WRITE", "W")):
        for at, name in enumerate(topics):
            granted = {each for grant in authorizer.who_can(operation, name) for each in grant.principals}
            shown = {
                principal for principal, cells in rows.items() if principal.startswith("User:") and letter in cells[at]
            }
            assert shown == granted, (operation, name)


def test_the_use_of_acls_is_that_of_usage(html):
    counts = {}
    for each in library.acl_usage(LOG, ACCESSES, super_users="User:admin"):
        counts[each["answer"]] = counts.get(each["answer"], 0) + 1
    for answer, count in counts.items():
        assert re.search(rf"{answer}\s*{count}\b", html.text)
    removable = sum(each["removable"] for each in library.acl_usage(LOG, ACCESSES, super_users="User:admin"))
    assert f"{removable} ACLs can be removed" in html.text.replace("1 ACL can", "1 ACLs can")


def test_changes_and_their_chart(html, tmp_path):
    history = list(library.open_log(LOG).history())
    added = sum(each.kind.value == "ADDED" for each in history)
    assert f"{added} ACLs added and {len(history) - added} removed." in html.text
    bars = re.findall(r": (\d+) added, (\d+) removed", html.text)
    assert (sum(int(each) for each, _ in bars), sum(int(each) for _, each in bars)) == (added, len(history) - added)
    assert len(bars) <= 60
    early = written(tmp_path / "early.md", LOG, "--as-of", "36", "--sections", "changes")
    assert "17 ACLs added and 0 removed" in early
    assert "single state" in written(tmp_path / "files.md", WEEK / "rules.jsonl", "--sections", "changes")


def test_a_document_has_no_script_and_no_address(html):
    assert not {"script", "img", "link", "iframe", "object", "form"} & set(html.tags)
    assert not [name for name, _ in html.attributes if name.startswith("on") or name in ("src", "style")]
    assert {value[0] for name, value in html.attributes if name == "href"} == {"#"}
    assert "http" not in html.text
    assert dict(html.attributes)["content"].startswith("default-src 'none'")


@pytest.mark.parametrize("suffix", [".html", ".md"])
def test_no_name_becomes_markup(tmp_path, suffix):
    names = [
        *NAMES.values(),
        "<script>alert(1)</script>",
        "`x`|y",
        '"><svg onload=x>',
        "[a](http://x)",
        "{{ 7*7 }}",
        "\x1b[2J",
    ]
    rules = [acl(number, name=f"{name}", principal=f"User:{name}") for number, name in enumerate(dict.fromkeys(names))]
    plain = [acl(number, name=f"t{number}", principal=f"User:p{number}") for number in range(len(names))]
    hostile = written(tmp_path / f"a{suffix}", write_log(tmp_path / "hostile", rules))
    harmless = written(tmp_path / f"b{suffix}", write_log(tmp_path / "harmless", plain))
    raw = (tmp_path / f"a{suffix}").read_text()
    assert "\x1b" not in raw
    if suffix == ".html":
        assert set(hostile.tags) == set(harmless.tags)
        assert {name for name, _ in hostile.attributes} == {name for name, _ in harmless.attributes}
        assert "<script" not in raw
    else:
        outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", hostile)
        assert not re.search(r"(?<!\\)<|(?<!\\)\[a\]", outside)


def test_tables_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("aclog.ops.report.MOST_ROWS", 3)
    monkeypatch.setattr("aclog.ops.report.MOST_PRINCIPALS", 2)
    page = written(tmp_path / "week.md", LOG)
    assert "And 6 more." in page  # of nine principals
    assert "And 7 more principals with fewer ACLs." in page
    assert "And 18 more." in page  # of 21 changes
    assert max(map(len, tables(page)[1:])) <= 7  # facts of the numbers are not cut to three


def test_what_is_unknown_is_in_the_head(tmp_path):
    write_files(tmp_path / "rules", {"a.jsonl": ONE_RULE, "b.tf": 'resource "rhoas_acl" "a" {}\n'})
    page = written(tmp_path / "unread.md", tmp_path / "rules")
    assert "**Every answer holds unless " in page
    assert "Content that may hold rules was not read." in page
    assert "holds unless" not in written(tmp_path / "week.md", LOG, "--sections", "everyone")


def test_bad_input_is_one_line(tmp_path):
    for words, text in (
        ((LOG, "--out", tmp_path / "x.pdf"), "expected a file .html or .md"),
        ((LOG, "--out", tmp_path / "x.md", "--sections", "all"), "no section 'all': expected some of numbers, access"),
        ((LOG, "--out", tmp_path / "x.md", "--index", "i", "--accesses", ACCESSES), "expected one of them"),
        ((LOG, "--out", tmp_path / "none/x.md", "--sections", "everyone"), "no such file"),
        (("nowhere", "--out", tmp_path / "x.md"), "'nowhere' is no source"),
    ):
        assert text in aclog("report", *words).complaint
    assert not list(Path(tmp_path).iterdir())
