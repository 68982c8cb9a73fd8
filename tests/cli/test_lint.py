"""`aclog lint` by its own command line: findings with their places and mends, formats, suppressions, exit codes."""

import json
import shutil
import subprocess
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aclog.analysis.lint_report import LINTS
from tests.support.builders.acls import acl_row
from tests.support.cli.command import aclog
from tests.support.cli.shell_sources import SMALL
from tests.support.fakes.broker import FakeBroker

STAR = acl_row("*", principal="User:a", operation="READ", patternType="PREFIXED")
NO_TYPE = acl_row("orders", principal="alice", operation="READ")
FINE = [
    acl_row("orders", principal="User:b", operation="READ"),
    acl_row("b", principal="User:b", operation="READ", resourceType="GROUP"),
]
UNGROUPED = acl_row("orders", principal="User:c", operation="READ")
RULE_KEYS = ["resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType"]


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that writes text, or JSON lines, to a file of the working directory, and returns its name."""
    monkeypatch.chdir(tmp_path)

    def write(name, *rows):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(row if isinstance(row, str) else f"{json.dumps(row)}\n" for row in rows))
        return name

    return write


def lines_of(result):
    return [json.loads(line) for line in result.lines]


def found(result):
    return {(line["lint"], line["rules"][0]["principal"]) for line in lines_of(result)}


def test_a_finding_names_the_rule_its_line_what_is_lost_and_the_mend(write):
    result = aclog(
        "lint", "--acls", write("acls.jsonl", *FINE, STAR, NO_TYPE), "--select", "01,05", "--format", "jsonl"
    )
    assert result.code == 1
    first, second = lines_of(result)
    assert list(first) == ["lint", "severity", "rules", "lost", "fix"]
    assert (first["lint"], first["severity"]) == ("01", "error")
    assert first["rules"] == [{**{key: STAR[key] for key in RULE_KEYS}, "file": "acls.jsonl", "line": 3}]
    assert "'*'" in first["lost"]
    flags = "--allow-principal User:a --allow-host '*' --operation Read --topic '*'"
    cluster = "kafka-acls.sh --bootstrap-server HOST:PORT"
    assert first["fix"].splitlines() == [
        f"{cluster} --add {flags}",
        f"{cluster} --remove {flags} --resource-pattern-type prefixed",
    ]
    assert second["rules"][0]["line"] == 4
    assert second["fix"].splitlines()[-1].startswith("# remove ALLOW alice READ")


def test_the_mend_is_for_the_place_of_the_source(write, tmp_path):
    aclog("import", write("acls.jsonl", STAR), "--log", tmp_path / "a log").ok()
    [line] = lines_of(aclog("lint", "--log", tmp_path / "a log", "--select", "01", "--format", "jsonl"))
    assert line["fix"].startswith(f"aclog acls add --log '{tmp_path}/a log' --allow-principal User:a")
    assert set(line["rules"][0]) == {*RULE_KEYS, "offset", "timestamp"}
    with FakeBroker() as broker:
        result = aclog("lint", "--bootstrap-server", str(broker.address), "--format", "jsonl")
        assert (result.code, result.out) == (0, "")


def test_text_is_grouped_worst_first_with_a_summary(write):
    rows = [UNGROUPED, *FINE, STAR, *({**NO_TYPE, "resourceName": f"t{number}"} for number in range(9))]
    result = aclog("lint", "--acls", write("acls.jsonl", *rows), "--select", "01,05,13")
    assert result.code == 1
    heads = [line for line in result.lines if line.startswith(("error", "warning"))]
    assert [head.split(":")[0] for head in heads] == [
        "error [01 prefixed-star]",
        "error [05 principal-without-type]",
        "warning [13 consumer-without-group]",
    ]
    assert "  acls.jsonl:4: ALLOW User:a READ on TOPIC PREFIXED '*' from *" in result.lines
    assert "    remove: acls.jsonl:4" in result.lines
    assert "  and 4 more: --select 05 --format jsonl has all" in result.lines
    assert result.lines[-1] == "10 errors, 2 warnings in 13 rules"


def test_no_findings(write):
    result = aclog("lint", "--acls", write("acls.jsonl", *FINE))
    assert (result.code, result.lines) == (0, ["no findings in 2 rules"])
    topics = "check 21 prefix-without-separator, which needs the existing topics (--topics); "
    assert f"{topics}check 26 grown-reach, which needs" in result.err
    assert aclog("lint", "--acls", "acls.jsonl", "--format", "markdown").ok().lines == ["no findings in 2 rules."]


@pytest.mark.parametrize(
    ("flags", "code"),
    [((), 0), (("--fail-on", "warning"), 1), (("--fail-on", "never"), 0), (("--fail-on", "error"), 0)],
)
def test_a_warning_fails_only_if_asked_to(write, flags, code):
    assert aclog("lint", "--acls", write("acls.jsonl", UNGROUPED), "--select", "13", *flags).code == code


def test_fail_on_never_is_for_errors_too(write):
    assert aclog("lint", "--acls", write("acls.jsonl", STAR), "--fail-on", "never").code == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--select", "99"), "'99' is no lint"),
        (("--select", " ,"), "--select: no lint is selected"),
        (("--config", "none.toml"), "--select: no lint is selected"),
        (("--principal-types", ""), "--principal-types: expected types with commas between them"),
        (("--fix", "-"), "--fix -: expected a file"),
        (("--broker-version", "new"), "--broker-version 'new': expected a release of Kafka, such as 3.9.1"),
        (("--broker-principals", "broker-1"), "--broker-principals: 'broker-1' has no type"),
        (("--ignore", "nowhere.toml"), "nowhere.toml: no such file"),
        (("--config", "nowhere.toml"), "nowhere.toml: no such file"),
        (("--accesses", "empty.jsonl"), "empty.jsonl: no line has a principal"),
        (("--topics", "-", "--groups", "-"), "only one of them can be stdin"),
        (("--explain", "what"), "'what' is no lint"),
    ],
)
def test_bad_input(write, flags, said):
    write("empty.jsonl", {"host": "h"})
    write("none.toml", "[lint]\nselect = []\n")
    result = aclog("lint", "--acls", write("acls.jsonl", *FINE), *flags)
    assert result.code == 2
    assert said in result.complaint


def test_without_a_source_it_says_so(write, tmp_path):
    assert "exactly one state source" in aclog("lint").complaint


# --accesses


NEAR = acl_row("orders", principal="User:Bob", operation="READ")


@pytest.mark.parametrize(
    "rows",
    [
        [{"principal": "User:bob"}],
        [{"principal": "User:bob", "host": "nonsense", "operation": "READ"}],
        [{"principal": "User:bob", "kind": "byResourceType", "resourceType": "TOPIC"}, {"no": "principal"}],
    ],
)
def test_a_row_of_accesses_may_have_a_principal_alone(write, rows, tmp_path):
    acls = write("acls.jsonl", NEAR)
    flags = ("--select", "06", "--format", "jsonl", "--accesses")
    assert found(aclog("lint", "--acls", acls, *flags, write("seen.jsonl", *rows))) == {("06", "User:Bob")}
    pq.write_table(pa.Table.from_pylist(rows[:1] * 3), tmp_path / "seen.parquet")
    assert found(aclog("lint", "--acls", acls, *flags, "seen.parquet")) == {("06", "User:Bob")}


def test_accesses_that_are_no_table_of_principals(write, tmp_path):
    pq.write_table(pa.Table.from_pylist([{"who": "User:bob"}]), tmp_path / "seen.parquet")
    result = aclog("lint", "--acls", write("acls.jsonl", NEAR), "--accesses", "seen.parquet")
    assert result.code == 2
    assert "seen.parquet: expected Parquet with a column principal" in result.complaint


# suppressions and aclog.toml


def suppression(**values):
    return "[[ignore]]\n" + "".join(f"{key} = {value}\n" for key, value in values.items())


def test_a_suppressed_finding_is_counted_and_does_not_fail(write):
    ignore = write("ignore.toml", suppression(lint='"prefixed-star"', principal='"User:a"', reason='"known"'))
    acls = write("kafka/acls.jsonl", STAR)
    result = aclog("lint", "--acls", acls, "--ignore", ignore, "--select", "01").ok()
    assert result.lines == ["no findings in 1 rule; 1 suppressed"]
    assert result.err == ""
    assert aclog("lint", "--acls", acls, "--ignore", ignore, "--select", "01", "--format", "jsonl").ok().out == ""


def test_a_suppression_by_file_means_it_whatever_the_path_was(write, tmp_path):
    write("aclog.toml", "[lint]\n[[lint.ignore]]\nlint='01'\nfile='kafka/*'\nreason='r'\n")
    write("kafka/acls.jsonl", STAR)
    for path in ("kafka/acls.jsonl", "./kafka/acls.jsonl", tmp_path / "kafka/acls.jsonl"):
        assert aclog("lint", "--acls", path, "--select", "01").ok().lines[-1].endswith("1 suppressed")
    write("acls.jsonl", STAR)
    assert aclog("lint", "--acls", "acls.jsonl", "--select", "01").code == 1


def test_an_expired_one_suppresses_nothing_and_is_said(write):
    today = datetime.now(UTC).date()
    flags = ("--acls", write("acls.jsonl", STAR), "--select", "01", "--ignore")
    past = write("past.toml", suppression(lint='"01"', reason='"r"', expires=today - timedelta(days=1)))
    result = aclog("lint", *flags, past)
    assert result.code == 1
    assert "past.toml:2: the suppression of 01 has expired" in result.err
    future = write("future.toml", suppression(lint='"01"', reason='"r"', expires=today + timedelta(days=2)))
    assert aclog("lint", *flags, future).ok().err == ""


def test_a_stale_one_is_said_if_its_lint_ran(write):
    ignore = write("ignore.toml", suppression(lint='"01"', reason='"r"'))
    flags = ("--acls", write("acls.jsonl", *FINE), "--ignore", ignore)
    said = "ignore.toml:2: the suppression of 01 is stale: there is no such finding"
    assert said in aclog("lint", *flags).ok().err
    assert said not in aclog("lint", *flags, "--select", "05").ok().err


def test_a_suppression_of_no_lint_is_refused_with_its_line(write):
    ignore = write("ignore.toml", "\n" + suppression(lint='"99"', reason='"r"'))
    result = aclog("lint", "--acls", write("acls.jsonl"), "--ignore", ignore)
    assert result.code == 2
    assert result.complaint.startswith("ignore.toml:3: ignore[1].lint: '99' is no lint")


STRIMZI = """apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata:
  name: a
  labels: {{strimzi.io/cluster: c}}
spec:
  authentication: {{type: scram-sha-512}}
  authorization:
    type: simple
    acls:
      # aclog: ignore {comment}
      # and another comment

      - resource: {{type: topic, name: "*", patternType: prefix}}
        operations: [Read]  {trailing}
      - resource: {{type: topic, name: "b*c"}}
        operations: [Read]
"""


def test_a_comment_suppresses_findings_on_the_rule_below(write):
    write("user.yaml", STRIMZI.format(comment="01,glob-in-name: asked for by audit until 2099-01-01", trailing=""))
    result = aclog("lint", "--acls", "user.yaml", "--select", "01,02", "--format", "jsonl")
    assert [(line["lint"], line["rules"][0]["resourceName"]) for line in lines_of(result)] == [("02", "b*c")]
    assert "stale" not in result.err
    log = json.loads(aclog("lint", "--acls", "user.yaml", "--select", "01", "--format", "sarif").ok().out)
    [found] = log["runs"][0]["results"]
    assert found["suppressions"][0]["justification"] == "asked for by audit (user.yaml:11)"


def test_a_comment_that_has_expired_or_suppresses_nothing_is_said(write):
    write("user.yaml", STRIMZI.format(comment="01 old until 2020-01-01", trailing="# aclog: ignore 05 no such thing"))
    result = aclog("lint", "--acls", "user.yaml", "--select", "01,05")
    assert result.code == 1
    assert "user.yaml:11: the suppression of 01 has expired" in result.err
    assert "user.yaml:15: the suppression of 05 is stale" in result.err


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("01", "expected a reason after the lint"),
        ("01: until 2099-01-01", "expected a reason after the lint"),
        ("", "expected `aclog: ignore ID[,ID...] REASON [until YYYY-MM-DD]`"),
        ("everything because", "'everything' is no lint"),
        ("01 because until 2099-13-01", "month must be in 1..12"),
    ],
)
def test_a_comment_without_lint_or_reason_is_refused(write, comment, said):
    write("user.yaml", STRIMZI.format(comment=comment, trailing=""))
    result = aclog("lint", "--acls", "user.yaml")
    assert result.code == 2
    assert result.complaint.startswith("user.yaml:11: ")
    assert said in result.complaint


def test_comments_of_a_commit_count_as_well(write, tmp_path):
    def git(*words):
        subprocess.run(
            ["git", "-c", "user.name=n", "-c", "user.email=e@example", *words], cwd=tmp_path, check=True,
            capture_output=True,
        )  # fmt: skip

    git("init", "-q", ".")
    write("kafka/user.yaml", STRIMZI.format(comment="01 asked for", trailing=""))
    git("add", ".")
    git("commit", "-q", "-m", "rules")
    write("kafka/user.yaml", STRIMZI.format(comment="05 another", trailing=""))
    assert aclog("lint", "--ref", "HEAD:kafka", "--select", "01").ok().lines[-1].endswith("1 suppressed")
    assert aclog("lint", "--acls", "kafka", "--select", "01").code == 1


def test_settings_are_those_of_the_repository_and_flags_win(write):
    write("kafka/acls.jsonl", UNGROUPED, acl_row("t", principal="Group:g", operation="READ"))
    write(
        "aclog.toml",
        "[source]\nacls = 'kafka/acls.jsonl'\n[lint]\nselect = ['07', '13']\nfail-on = 'warning'\n"
        "principal-types = ['User', 'Group']\n",
    )
    result = aclog("lint", "--format", "jsonl")
    assert result.code == 1
    assert found(result) == {("13", "User:c"), ("13", "Group:g")}
    assert "aclog: note: settings are those of aclog.toml" in result.err
    assert aclog("lint", "--fail-on", "error").code == 0
    typed = aclog("lint", "--principal-types", "User", "--select", "07", "--format", "jsonl")
    assert found(typed) == {("07", "Group:g")}


def test_the_format_is_that_of_the_source_in_the_settings(write):
    write("acls.jsonl", STAR)
    write("aclog.toml", "[source]\nacls = 'acls.jsonl'\nformat = 'strimzi'\n")
    assert "strimzi" in aclog("lint", "--select", "01").complaint
    assert aclog("lint", "--select", "01", "--acls-format", "jsonl").code == 1
    assert aclog("lint", "--select", "01", "--acls", "acls.jsonl").code == 1


def test_authorizer_settings_too_and_flags_win(write):
    cluster = acl_row("kafka-cluster", principal="User:root", operation="ALTER", resourceType="CLUSTER")
    write("acls.jsonl", cluster, acl_row("t", principal="User:a", host="10.0.0.0/8", operation="WRITE"))
    write("aclog.toml", "[source]\nacls='acls.jsonl'\n[authorizer]\nsuper-users='User:root'\ncidr=true\n")
    assert aclog("lint", "--select", "04,17").ok().lines == ["no findings in 2 rules"]
    result = aclog("lint", "--select", "04,17", "--super-users", "", "--no-cidr", "--format", "jsonl")
    assert found(result) == {("17", "User:root"), ("04", "User:a")}


def test_what_everyone_may_do_is_suppressed_like_all_else(write):
    wide = acl_row("*", principal="User:*", operation="READ")
    flags = ("lint", "--acls", write("acls.jsonl", wide, *FINE), "--format", "jsonl")
    [error, *warnings] = lines_of(aclog(*flags, "--select", "08,27"))
    assert (error["lint"], error["severity"]) == ("27", "error")
    assert error["fix"] == "# Grant access to the principals, on the names and for the operations that need it."
    assert [(line["lint"], line["rules"][0]["principal"]) for line in warnings] == [("08", "User:b")]
    assert "suspect is ALLOW User:* READ on every topic" in warnings[0]["lost"]
    assert warnings[0]["fix"].startswith("# Keep it")
    write(
        "aclog.toml",
        "[[lint.ignore]]\nlint = 'everyone-reaches-far'\nprincipal = 'User:*'\nresourceName = '*'\nreason = 'a lab'\n",
    )
    result = aclog("lint", "--acls", "acls.jsonl", "--select", "27").ok()
    assert result.lines == ["no findings in 3 rules; 1 suppressed"]


def test_a_lint_with_errors_and_warnings_has_a_heading_for_each(write):
    rows = [acl_row(name, principal="User:*", operation=each) for name, each in (("*", "READ"), ("*", "DESCRIBE"))]
    lines = aclog("lint", "--acls", write("acls.jsonl", *rows), "--select", "27").lines
    heads = [line.partition(":")[0] for line in lines if line.startswith(("error", "warning"))]
    assert heads == ["error [27 everyone-reaches-far]", "warning [27 everyone-reaches-far]"]


@pytest.mark.parametrize(("kind", "operation"), [("GROUP", "READ"), ("TRANSACTIONAL_ID", "WRITE")])
def test_a_rule_on_an_empty_name_is_no_crash(write, kind, operation):
    row = acl_row("", principal="User:a", operation=operation, resourceType=kind)
    result = aclog("lint", "--acls", write("acls.jsonl", row))
    assert result.code == 1
    assert any(line.startswith("error [09 overridden-allow]") for line in result.lines)
    assert aclog("lint", "--acls", "acls.jsonl", "--select", "19,20").ok().lines == ["no findings in 1 rule"]


# formats


def test_sarif_is_a_log_with_rules_places_fingerprints_and_suppressions(write, tmp_path):
    (tmp_path / ".git").mkdir()
    ignore = write("ignore.toml", suppression(lint='"05"', reason='"known"'))
    flags = ("--select", "01,05", "--ignore", ignore, "--format", "sarif", "--acls")

    def log_of(*rows):
        result = aclog("lint", *flags, write("kafka/a b.jsonl", *rows))
        assert result.code == 1
        return json.loads(result.out)

    log = log_of(*FINE, STAR, NO_TYPE)
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    [run] = log["runs"]
    driver = run["tool"]["driver"]
    assert [rule["id"] for rule in driver["rules"]] == [lint.id for lint in LINTS]
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["help"]["markdown"]
        assert rule["defaultConfiguration"]["level"] in {"error", "warning"}
    star, no_type = run["results"]
    assert driver["rules"][star["ruleIndex"]]["id"] == star["ruleId"] == "01"
    assert star["level"] == "error"
    [location] = star["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "kafka/a%20b.jsonl"},
        "region": {"startLine": 3},
    }
    assert star["suppressions"] == []
    [accepted] = no_type["suppressions"]
    assert accepted == {"kind": "external", "status": "accepted", "justification": "known (ignore.toml:2)"}
    moved = log_of(FINE[0], STAR, NO_TYPE)["runs"][0]["results"][0]
    assert moved["locations"][0]["physicalLocation"]["region"]["startLine"] == 2
    assert moved["partialFingerprints"] == star["partialFingerprints"] != no_type["partialFingerprints"]


def test_sarif_paths_begin_at_the_root_of_the_repository(write, tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    write("kafka/acls.jsonl", STAR)
    monkeypatch.chdir(tmp_path / "kafka")
    log = json.loads(aclog("lint", "--acls", "acls.jsonl", "--format", "sarif").out)
    [location] = log["runs"][0]["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "kafka/acls.jsonl"


def test_sarif_of_files_from_below_and_of_stdin(write, tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    content = (tmp_path / write("kafka/acls.jsonl", STAR)).read_bytes()
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")

    def uris(*flags, stdin=b""):
        log = json.loads(aclog("lint", *flags, "--select", "01", "--format", "sarif", stdin=stdin).out)
        found = [place.get("physicalLocation") for each in log["runs"][0]["results"] for place in each["locations"]]
        return [place and place["artifactLocation"]["uri"] for place in found]

    assert uris("--acls", "../kafka") == uris("--acls", tmp_path / "kafka") == ["kafka/acls.jsonl"]
    assert uris("--acls", "-", stdin=content) == [None]


def test_terraform_addresses_tell_rules_of_one_line_apart(write):
    write(
        "acls.tf",
        """resource "kafka_acl" "read" {
  for_each                     = toset(["a", "b"])
  resource_name                = "*"
  resource_type                = "Topic"
  resource_pattern_type_filter = "Prefixed"
  acl_principal                = "User:${each.key}"
  acl_host                     = "*"
  acl_operation                = "Read"
  acl_permission_type          = "Allow"
}
""",
    )
    lines = aclog("lint", "--acls", "acls.tf", "--select", "01").lines
    assert [line for line in lines if line.startswith("    remove: ")] == [
        '    remove: acls.tf:1 (kafka_acl.read["a"])',
        '    remove: acls.tf:1 (kafka_acl.read["b"])',
    ]


def test_markdown_is_a_table(write):
    lines = aclog("lint", "--acls", write("acls.jsonl", STAR), "--select", "01", "--format", "markdown").lines
    assert lines[0].startswith("| severity | lint |")
    assert lines[2].startswith(r"| error | 01 prefixed-star | ALLOW User:a READ on TOPIC PREFIXED '\*' from \*")
    assert lines[-1] == "1 error in 1 rule."


# the catalogue


def test_the_catalogue(write):
    listed = aclog("lint", "--list").ok().lines
    assert [line[:2] for line in listed] == [lint.id for lint in LINTS]
    explained = aclog("lint", "--explain", "8,grown-reach").ok().out
    assert explained.startswith("08 shadowed (warning; findings are certain)\n")
    assert "26 grown-reach (warning; findings are likely, but not certain" in explained
    assert "Needs a source with a history." in explained


def test_ids_are_completed():
    from aclog.cli.lint import complete_ids, complete_one

    assert [word for word, _ in complete_ids("08,0")][:2] == ["08,01", "08,02"]
    assert "08,08" not in [word for word, _ in complete_ids("08,0")]
    assert [word for word, _ in complete_one("shad")] == ["shadowed"]


# logs


def test_places_in_a_log_are_those_of_the_newest_addition(write, tmp_path):
    log = tmp_path / "log"
    write("acls.jsonl", STAR, *FINE)
    aclog("import", "acls.jsonl", "--log", log).ok()
    rule = ("--allow-principal", "User:a", "--operation", "READ", "--topic", "*", "--resource-pattern-type", "prefixed")
    aclog("acls", "remove", "--log", log, *rule, "--force").ok()
    aclog("acls", "add", "--log", log, *rule).ok()
    [line] = lines_of(aclog("lint", "--log", log, "--select", "01", "--format", "jsonl"))
    records = [json.loads(each) for each in aclog("log", "dump", "--json", log).ok().lines]
    added = [each for each in records if each["type"] == "ACCESS_CONTROL_ENTRY_RECORD"][-1]
    [gone] = [each["offset"] for each in records if each["type"].startswith("REMOVE_ACCESS")]
    [rule_line] = line["rules"]
    assert (rule_line["offset"], rule_line["timestamp"]) == (added["offset"], added["timestamp"])
    text = aclog("lint", "--log", log, "--select", "01").lines
    assert text[1].startswith(f"  offset {added['offset']}, ")
    early = lines_of(aclog("lint", "--log", log, "--select", "01", "--format", "jsonl", "--as-of", gone))
    assert early[0]["rules"][0]["offset"] < added["offset"]


def test_grown_reach_of_a_log_that_a_kafka_wrote():
    """User:bob's `pay` covered payments.eu; then came tmp-orders and pay.late, and tmp-orders went."""
    flags = ("--log", SMALL / "__cluster_metadata-0", "--select", "26", "--format", "jsonl")
    [line] = lines_of(aclog("lint", *flags).ok())
    [rule] = line["rules"]
    assert (rule["resourceName"], rule["offset"], rule["principal"]) == ("pay", 38, "User:bob")
    assert line["lost"] == "grants User:bob ALL on 2 topics now, 1 at first; of other owners: pay.late"
    assert "--add" in line["fix"]
    assert "--topic payments. --resource-pattern-type prefixed" in line["fix"]
    assert aclog("lint", *flags, "--as-of", 178).ok().out == ""
    early = aclog("lint", *flags[:2], "--as-of", 60, "--format", "jsonl")
    assert all(rule["offset"] < 60 for each in lines_of(early) for rule in each["rules"])


def test_a_rule_that_is_older_than_the_log_reaches_has_no_place(tmp_path):
    """Nobody knows when the rules and topics came into being that only the checkpoint has."""
    short = tmp_path / "short"
    shutil.copytree(SMALL / "__cluster_metadata-0", short, ignore=shutil.ignore_patterns(f"{0:020}.*"))
    lines = lines_of(aclog("lint", "--log", short, "--format", "jsonl"))
    assert lines
    assert [line for line in lines if line["lint"] == "26"] == []
    offsets = {rule.get("offset") for line in lines for rule in line["rules"]}
    assert None in offsets
    assert min(offsets - {None}) >= 211  # the end of the checkpoint with which the history begins
    result = aclog("lint", "--log", SMALL / "__cluster_metadata-0", "--format", "jsonl")
    assert all("offset" in rule for line in lines_of(result) for rule in line["rules"])


def test_a_checkpoint_has_no_history():
    checkpoint = max((SMALL / "__cluster_metadata-0").glob("*.checkpoint"))
    result = aclog("lint", "--snapshot", checkpoint, "--select", "26").ok()
    assert "skipped: check 26 grown-reach, which needs a source with a history" in result.err


def test_redpanda_has_roles(tmp_path):
    path = tmp_path / "rules.jsonl"
    for principal, code in (("RedpandaRole:ops", 0), ("Group:ops", 0), ("Robot:ops", 1)):
        path.write_text(json.dumps(acl_row("t", principal=principal)))
        flags = ("--acls", path, "--select", "07", "--fail-on", "warning")
        assert aclog("lint", *flags, "--broker-version", "redpanda").code == code
        assert aclog("lint", *flags).code == 1
        assert aclog("lint", *flags, "--broker-version", "redpanda", "--principal-types", "Robot").code == 1 - code
