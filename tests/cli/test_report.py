"""`aclog report`: its claims beside the commands that it names, and names that would be markup."""

import hashlib
import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path

import pytest

import aclog as library
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.publisher import recover
from tests.support.builders.hostile_names import NAMES
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl, removal
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
    assert len(lines) > 10
    for line in dict.fromkeys(lines):
        name, *words = shlex.split(line)
        result = aclog(*words)
        assert (name, result.code in (0, 1)) == ("aclog", True), result
        assert ("--as-of 40" in line) is not line.startswith("aclog accesses usage ")


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
    recompute = next(line for line in page.splitlines() if line.startswith("To recompute the SHA-256"))
    command = recompute.split("`")[1].split(" | ")[0]
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
    days = int(re.search(r"in the (\d+) days that end with the latest access", html.text)[1])
    assert days < 5  # the log is younger than the default
    uses = list(library.acl_usage(LOG, ACCESSES, days=days, super_users="User:admin"))
    counts = {}
    for each in uses:
        counts[each["answer"]] = counts.get(each["answer"], 0) + 1
    for answer, count in counts.items():
        assert re.search(rf"{answer}\s*{count}(?!\d)", html.text)
    removable = sum(each["removable"] for each in uses)
    assert removable
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
        ((LOG, "--out", tmp_path / "x.doc"), "expected a file .html, .md or .pdf"),
        ((LOG, "--out", tmp_path / "x.md", "--sections", "all"), "no section 'all': expected some of who-can, numbers"),
        ((LOG, "--out", tmp_path / "x.md", "--index", "i", "--accesses", ACCESSES), "expected one of them"),
        ((LOG, "--out", tmp_path / "none/x.md", "--sections", "everyone"), "no such file"),
        (("nowhere", "--out", tmp_path / "x.md"), "'nowhere' is no source"),
    ):
        assert text in aclog("report", *words).complaint
    assert not list(Path(tmp_path).iterdir())


def lines_of(*rules):
    """A file of rules: type, name, principal, operation, and of some the permission."""
    keys = ("resourceType", "resourceName", "principal", "operation", "permissionType")
    rest = {"patternType": "LITERAL", "host": "*", "permissionType": "ALLOW"}
    return "".join(json.dumps({**rest, **dict(zip(keys, rule, strict=False))}) + "\n" for rule in rules)


def commands(page):
    return [shlex.split(line.strip("`"))[1:] for line in page.splitlines() if line.startswith("`aclog ")]


def test_the_matrix_has_all_types_and_all_topics(tmp_path):
    names = [f"t{number}." for number in range(14)]
    rules = [("TOPIC", name, f"User:{name}", "WRITE") for name in names]
    rules += [("TOPIC", "*", "User:star", "READ"), ("DELEGATION_TOKEN", "t", "User:token", "DESCRIBE")]
    (tmp_path / "rules.jsonl").write_text(lines_of(*rules, ("USER", "u", "User:user", "CREATE_TOKENS")))
    page = written(tmp_path / "a.md", tmp_path / "rules.jsonl", "--sections", "access")
    [head] = re.findall(r"^\| principal \| (.*) \|$", page, re.MULTILINE)
    heads = head.replace("\\", "").split(" | ")
    cells = {row[0]: dict(zip(heads, map(str.strip, row[1:]), strict=False)) for row in (
        line.strip("|").split("|") for line in page.splitlines() if line.startswith("| "))}  # fmt: skip
    cells = {name.strip(): row for name, row in cells.items()}
    assert cells["User:star"]["at least one TOPIC"] == "R"
    assert (cells["User:token"]["at least one DELEGATION_TOKEN"], cells["User:user"]["at least one USER"]) == ("d", "d")
    assert (
        "Columns without a letter are left out: at least one GROUP, at least one TRANSACTIONAL\\_ID, CLUSTER." in page
    )
    assert not {"at least one GROUP", "CLUSTER"} & set(heads)
    assert cells["User:star"][heads[0]] == "R"
    assert [cells[f"User:{name}"]["at least one TOPIC"] for name in names] == ["W"] * 14
    assert "And 2 more groups of topics, which the column at least one TOPIC covers." in page
    html = written(tmp_path / "a.html", tmp_path / "rules.jsonl", "--sections", "access")
    assert "And 2 more groups of topics" in html.text


def test_usage_judges_as_the_report(tmp_path):
    page = written(tmp_path / "a.md", LOG, "--sections", "unused", "--accesses", ACCESSES, "--days", "3")
    command = next(words for words in commands(page) if words[:2] == ["accesses", "usage"])
    answers = [json.loads(line)["answer"] for line in aclog(*command, "--format", "jsonl").lines]
    shown = next(rows for rows in tables(page) if rows[0][0] == min(answers))
    assert {verdict: count for verdict, count, _ in shown} == {
        answer: str(answers.count(answer)) for answer in sorted(set(answers))
    }
    as_of = written(
        tmp_path / "b.md", LOG, "--sections", "unused", "--accesses", ACCESSES, "--as-of", "36", "--timezone", "+01:00"
    )
    command = next(words for words in commands(as_of) if words[:2] == ["accesses", "usage"])
    assert "--as-of 36" in " ".join(command)
    assert "--timezone +01:00" in " ".join(command)


def test_lint_reads_the_accesses_of_the_report(tmp_path):
    part = tmp_path / "part.jsonl"
    part.write_text(ACCESSES.read_text().splitlines()[0] + "\n")
    page = written(tmp_path / "a.md", LOG, "--sections", "lint", "--accesses", ACCESSES, "--accesses", part)
    assert "skipped: check 06" not in page
    [command] = {tuple(words) for words in commands(page) if words[0] == "lint"}
    assert command.count("--accesses") == 2
    lints = [json.loads(line)["lint"] for line in aclog(*command, "--format", "jsonl").lines]
    assert "06" in lints
    assert {(row[1], row[3]) for row in tables(page)[1]} == {(each, str(lints.count(each))) for each in lints}


def test_the_use_of_acls_marks_removed_ones_and_names_what_is_not_logged(tmp_path):
    log = WEEK / "kafka-authorizer.log"
    page = written(tmp_path / "a.md", LOG, "--sections", "numbers,unused", "--accesses", log, "--days", "4")
    assert "17 ACLs for 9 principals." in page
    assert "19 ACLs in the metadata log: 17 exist at its end, 2 were removed before." in page
    assert "3 ACLs could not be judged, 2 of them removed." in page
    since = "in force only since 2026-11-19T22:40:00Z, after the window began"
    assert (
        f"| ALLOW User:\\* WRITE on TOPIC LITERAL 'orders' from \\* (removed 2026-11-20T07:15:00Z) | {since} |" in page
    )
    assert "| not in force at the end of the window |" in page
    assert "no request on a CLUSTER or a GROUP is in the access log: before you remove" in page
    flags = ("report", LOG, "--out", tmp_path / "b.md", "--sections", "unused", "--accesses", log)
    note = "no ACL was known 90 days before the end of the window: the window has 4 days"
    assert f"aclog: note: {note}" in aclog(*flags).ok().err
    young = (tmp_path / "b.md").read_text().replace("\\", "")
    assert "in the 4 days that end with the latest access" in young
    assert "3 ACLs could not be judged, 2 of them removed." in young
    of_four = aclog(*flags, "--days", "4").ok().err
    assert "was known" not in of_four
    longer = aclog(*flags, "--days", "5").ok().err
    assert "no ACL can be judged: each ACL was first seen after the window began" in longer
    assert "16 of the 17 ACLs in force" in longer


def test_the_use_of_acls_has_its_premises(tmp_path):
    lines = [json.loads(line) for line in ACCESSES.read_text().splitlines()]
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps(each) + "\n" for each in (lines[0], lines[-1])) + "no access\n"
    )
    page = written(
        tmp_path / "a.md",
        WEEK / "rules.jsonl",
        "--sections",
        "unused",
        "--accesses",
        tmp_path / "a.jsonl",
        "--days",
        "30",
    )
    before = page[: page.index("can be removed without changing any decision of the window, within the limits above.")]
    assert "the source has no history: all of its ACLs are assumed to be in force in the whole window" in before
    assert "no accesses on" in before
    assert "1 line skipped" in before
    assert "Limits of these verdicts." in before
    assert "| reason" not in page


def test_the_silences_of_an_index_are_premises(tmp_path):
    log = tmp_path / "kafka-authorizer.log"
    log.write_bytes((WEEK / "kafka-authorizer.log").read_bytes())
    aclog("usage-index", "--log", LOG, "--accesses", log, "--index", tmp_path / "index").ok()
    page = written(tmp_path / "a.md", LOG, "--sections", "unused", "--index", tmp_path / "index")
    assert "gap: no log lines of an unnamed broker" in page[: page.index("known to be removable")]


def test_acls_that_existed_before_are_no_changes(tmp_path):
    whole = write_log(tmp_path / "whole", *([acl(number)] for number in range(6)), [removal(0)])
    log = write_log(tmp_path / "short", [acl(4)], [acl(5)], [removal(0)], base=4, times=[5000, 6000, 7000])
    write_checkpoint(recover(whole, 4).image, log)
    page = written(tmp_path / "a.md", log, "--sections", "changes")
    assert "2 ACLs added and 1 removed since offset 4, where the log begins. 4 ACLs existed before." in page
    counts, listing = [
        [json.loads(line) for line in aclog(*command, "--format", "jsonl").ok().lines] for command in commands(page)
    ]
    assert [tuple(row.values()) for row in counts] == [("1970-01-01", "ADDED", 2), ("1970-01-01", "REMOVED", 1)]
    assert [row[0] for row in tables(page)[2]] == [str(row["offset"]) for row in listing] == ["6", "5", "4"]


def test_times_beyond_every_calendar_are_not_in_the_chart(tmp_path):
    times = [1_700_000_000_000, 253_402_300_799_000, 253_402_300_800_000, 1 << 61]
    log = write_log(tmp_path / "log", *([acl(number)] for number in range(4)), times=times)
    page = written(tmp_path / "a.md", log, "--sections", "changes")
    assert "4 ACLs added and 0 removed. 2 changes with a time after the year 9999: not in the chart." in page
    assert sum(int(added) for _, added, _ in tables(page)[1]) == 2


def test_administrators_and_exceptions_are_counted(tmp_path):
    rules = [("CLUSTER", "kafka-cluster", f"User:admin-with-a-long-name-{number:03}", "ALTER") for number in range(110)]
    rules += [("TOPIC", "open", f"User:blocked-with-a-long-name-{number:02}", "READ", "DENY") for number in range(30)]
    (tmp_path / "rules.jsonl").write_text(lines_of(*rules, ("TOPIC", "open", "User:*", "READ")))
    page = written(tmp_path / "a.md", tmp_path / "rules.jsonl", "--sections", "admins,everyone")
    assert len(re.findall(r"^\| User:admin-with-a-long-name-\d+ \|", page, re.MULTILINE)) == 100
    assert "And 10 more." in page
    assert re.search(r"anyone except (User:blocked-with-a-long-name-\d\d, ){10}and 20 more", page)
    assert "limited by 20 more" in page
    assert "\u2026" not in page


def test_each_command_has_the_flags_of_the_source(tmp_path):
    write_files(tmp_path / "rules", {
        "a.jsonl": ONE_RULE, "b.jsonl": lines_of(("TOPIC", "x", "User:other", "READ")),
        "c.tf": 'resource "rhoas_acl" "a" {}\n',
    })  # fmt: skip
    page = written(
        tmp_path / "a.md", "--acls", tmp_path / "rules", "--exclude", "b.jsonl",
        "--accept-unread", "resource:rhoas_acl", "--no-allow-everyone-if-no-acl-found",
        "--var", "a=b", "--workspace", "w",
    )  # fmt: skip
    assert dict(tables(page)[0])["Accepted unread"] == "resource:rhoas_acl"
    assert "1 ACL for 1 principal." in page
    for command in commands(page):
        text = " ".join(command)
        assert "--exclude b.jsonl --accept-unread resource:rhoas_acl --var a=b --workspace w" in text
        assert "PRINCIPAL" in command or aclog(*command).code in (0, 1)
    [row] = map(json.loads, aclog(*commands(page)[0], "--format", "jsonl").ok().lines)
    assert (row["acls"], row["principals"]) == (1, 1)


def test_lint_is_that_of_the_repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.jsonl").write_text(
        lines_of(*[("TOPIC", "x", "User:a", "READ"), ("TOPIC", "x", "User:a", "ALL")])
    )
    page = written(tmp_path / "all.md", "rules.jsonl", "--sections", "lint")
    total = len(aclog("lint", "--acls", "rules.jsonl", "--format", "jsonl").lines)
    assert total
    assert f"{total} finding" in page
    (tmp_path / "aclog.toml").write_text('[lint]\nselect = ["02"]\n')
    page = written(tmp_path / "some.md", "rules.jsonl", "--sections", "lint")
    selected = len(aclog(*commands(page)[0], "--format", "jsonl").lines)
    assert f"{selected} finding" in page
    assert selected < total
    assert dict(tables(page)[0])["Settings of lint"] == "aclog.toml"
    sql = "SELECT count(DISTINCT finding) AS n FROM findings"
    assert json.loads(aclog("query", sql, "rules.jsonl", "--format", "jsonl").ok().out) == {"n": selected}


def test_a_report_replaces_the_former_one_at_once(tmp_path, monkeypatch):
    path = tmp_path / "a.md"
    path.write_text("former")
    path.chmod(0o604)
    words = ("report", WEEK / "rules.jsonl", "--sections", "numbers", "--out", path)
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        assert "No space left" in aclog(*words).complaint
    assert path.read_text() == "former"
    aclog(*words).ok()
    assert path.read_text().startswith("# Access report")
    assert path.stat().st_mode & 0o777 == 0o604
    (tmp_path / "new.txt").touch()
    aclog(*words[:-1], tmp_path / "new.md").ok()
    assert (tmp_path / "new.md").stat().st_mode == (tmp_path / "new.txt").stat().st_mode
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.md", "new.md", "new.txt"]


RULES = WEEK / "rules.jsonl"


def test_drift_and_tests_are_those_of_their_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    aclog("import", RULES, "--log", "log").ok()
    lines = RULES.read_text().splitlines(keepends=True)
    (tmp_path / "want.jsonl").write_text("".join(lines[:5]))
    aclog("plan", "--log", "log", "--want", "want.jsonl", "--journal", "j", "--out", "p", "--adopt")
    aclog("apply", "p", "--journal", "j", "--yes").ok()
    (tmp_path / "want.jsonl").write_text("".join(lines[:3]) + ONE_RULE)
    (tmp_path / "tests.yaml").write_text(
        "tests:\n- principal: User:billing\n  can: {READ: [topic:orders]}\n"
        "- principal: User:billing\n  can: {WRITE: [topic:orders]}\n"
    )
    asked = ("--want", "want.jsonl", "--journal", "j", "--tests", "tests.yaml", "--sections", "drift,tests")
    page = written(tmp_path / "a.md", "log", *asked)
    commands = [line.strip("`") for line in page.splitlines() if line.startswith("`aclog ")]
    _, drift, tests = tables(page)
    listed = [json.loads(line) for line in aclog(*shlex.split(commands[0])[1:], "--format", "jsonl").lines]
    assert [kind for kind, _ in drift] == [each["kind"] for each in listed]
    assert {each["kind"] for each in listed} == {"MISSING", "LEFTOVER"}
    assert "1 missing" in page.replace("leftover, 1", "1")
    ran = [json.loads(line) for line in aclog(*shlex.split(commands[1])[1:], "--format", "jsonl").lines]
    failed = [each for each in ran if each.get("verdict") == "FAILED"]
    assert [location for location, *_ in tests] == [f"{each['file']}:{each['line']}" for each in failed]
    assert "2 cases: 1 failed." in page
    without = written(tmp_path / "b.md", "log", "--sections", "drift,tests")
    assert "no desired rules are given" in without
    assert "no tests are given" in without


def test_drift_of_what_is_no_target_is_refused(tmp_path):
    asked = ("--want", RULES, "--journal", tmp_path / "j", "-o", tmp_path / "a.md")
    for source in ((RULES,), (LOG, "--as-of", "30")):
        assert "expected such a source" in aclog("report", *source, *asked).complaint
    assert "expected both" in aclog("report", LOG, *asked[:2], *asked[4:]).complaint


def test_what_administrators_may_change_is_what_kafka_authorizes_by_each_operation(tmp_path):
    """As Kafka 4.3.1's ControllerApis: client quotas by ALTER_CONFIGS on the cluster, SCRAM credentials by ALTER."""
    page = written(tmp_path / "a.md", LOG, "--sections", "admins").replace("\\", "")
    claims = [line for line in page.splitlines() if line.startswith("Principals that may ")]
    assert [each.partition(": none")[0].rstrip(".") for each in claims] == [
        "Principals that may change ACLs and SCRAM credentials (ALTER on the cluster)",
        "Principals that may act as brokers (CLUSTER_ACTION)",
        "Principals that may change settings of brokers, and client quotas (ALTER_CONFIGS on the cluster)",
    ]


def test_the_matrix_has_only_operations_of_the_type(tmp_path):
    (tmp_path / "rules.jsonl").write_text(
        lines_of(*((kind, name, "User:all", "ALL") for kind, name in (("TOPIC", "t"), ("CLUSTER", "kafka-cluster"))))
    )
    page = written(tmp_path / "a.md", tmp_path / "rules.jsonl", "--sections", "access")
    [row] = [line for line in page.splitlines() if line.startswith("| User:all |")]
    assert [cell.strip() for cell in row.strip("|").split("|")] == ["User:all", "RWCDA", "RWCDA", "CAKW"]


def test_the_head_distinguishes_a_stated_setting_from_an_assumed_one(tmp_path):
    asked = (LOG, "--sections", "everyone")
    closed = "closed to all except super users (allow.everyone.if.no.acl.found is {})"
    for flags, text in (
        ((), closed.format("assumed false, Kafka's default: no flag and no source states it")),
        (("--no-allow-everyone-if-no-acl-found",), closed.format("false")),
        (("--allow-everyone-if-no-acl-found",), "open to everyone (allow.everyone.if.no.acl.found is true)"),
    ):
        facts = dict(tables(written(tmp_path / "a.md", *asked, *flags))[0])
        assert facts["Resources without ACLs"] == text


def test_the_newest_changes_are_all_of_them_or_counted(tmp_path, monkeypatch):
    assert "All 21 changes, newest first." in written(tmp_path / "a.md", LOG, "--sections", "changes")
    monkeypatch.setattr("aclog.ops.report.MOST_ROWS", 3)
    assert "The newest 3 of 21 changes." in written(tmp_path / "a.md", LOG, "--sections", "changes")
