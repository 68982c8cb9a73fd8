"""`aclog usage-index` and `aclog coverage`: what they take, print and refuse."""

import gzip
import json
import shutil

import jsonschema
import pytest

from aclog.authorizer.acls_image import AclsImage
from aclog.cli.schema import schema_of
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.image import Image, Provenance
from aclog.usage.index.usage_index import UsageIndex
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl, removal
from tests.support.cli.command import aclog

RULE = {
    "resourceType": "TOPIC", "resourceName": "orders", "patternType": "LITERAL", "principal": "User:a", "host": "*",
    "operation": "READ", "permissionType": "ALLOW",
}  # fmt: skip
RULES = [RULE, RULE | {"principal": "User:*"}, RULE | {"resourceName": "never"}]
ACCESS = {
    "principal": "User:a", "host": "10.0.0.1", "operation": "READ", "resourceType": "TOPIC", "resourceName": "orders",
    "timestamp": "2026-11-21T10:00:00Z",
}  # fmt: skip


def written(path, objects):
    path.write_text("".join(json.dumps(each) + "\n" for each in objects))
    return path


def days(*numbers, **more):
    """Return an access on each of these days of November."""
    return [ACCESS | {"timestamp": f"2026-11-{day:02}T10:00:00Z"} | more for day in numbers]


@pytest.fixture
def acls(tmp_path):
    return written(tmp_path / "acls.jsonl", RULES)


def index_of(tmp_path):
    return "--index", tmp_path / "index"


def matched(tmp_path):
    """How many accesses each rule matched, by principal and name."""
    with UsageIndex.open(tmp_path / "index") as index:
        used = index.used(0, 30_000)
        texts = index.texts(used.numbers.tolist())
    return {
        (text["principal"], text["resourceName"]): count
        for text, count in zip(texts, used.matched.tolist(), strict=True)
    }


def test_takes_what_is_new_once(tmp_path, acls):
    log, where = written(tmp_path / "a.log", days(10, 11)), index_of(tmp_path)
    said = aclog("usage-index", "--accesses", log, "--acls", acls, *where).ok()
    assert said.lines == [
        "1 file, 1 of them new, 0 grown",
        "2 accesses from 2026-11-10T10:00:00.000Z to 2026-11-11T10:00:00.000Z",
        "judged by 3 ACLs",
    ]
    again = aclog("usage-index", "--accesses", log, "--acls", acls, *where).ok()
    assert again.lines == ["1 file, 0 of them new, 0 grown", "nothing new"]
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(log.read_bytes()))
    written(log, days(10, 11, 12))
    grown = aclog("usage-index", "--accesses", f"{log}*", "--acls", acls, *where, "--format", "jsonl").ok()
    assert json.loads(grown.out) == {
        "files": 2, "newFiles": 0, "grownFiles": 1, "accesses": 1, "rejected": 0, "first": 1_794_477_600_000,
        "last": 1_794_477_600_000, "brokers": [], "acls": 3,
    }  # fmt: skip
    jsonschema.Draft202012Validator(schema_of("taken-accesses")).validate(json.loads(grown.out))
    assert matched(tmp_path) == {("User:a", "orders"): 3, ("User:*", "orders"): 3}


@pytest.mark.process
def test_says_the_same_whatever_processes_read_it(tmp_path, acls):
    logs = [written(tmp_path / f"{at}.log", days(*range(at, at + 9), principal=f"User:{at}")) for at in range(1, 4)]
    for workers in (1, 2):
        index = tmp_path / f"index-{workers}"
        paths = [word for log in logs for word in ("--accesses", log)]
        aclog("usage-index", *paths, "--acls", acls, "--index", index, "--workers", workers).ok()
    answers = {
        aclog("unused", "--acls", acls, "--index", tmp_path / f"index-{at}", "--days", 5, "--format", "jsonl").out
        for at in (1, 2)
    }
    assert len(answers) == 1


def test_judges_by_the_rules_of_the_time(tmp_path):
    """A rule that comes back under another id is another life."""
    log = write_log(tmp_path / "metadata", [acl(1), acl(2)], [removal(2)], [acl(3, name="2")])  # at 1, 2 and 3 s
    rule = json.loads(aclog("acls", "list", "--log", log, "--format", "jsonl").lines[0])
    access = ACCESS | {"principal": rule["principal"], "operation": rule["operation"]}
    times = ((2, 1500), (2, 2500), (2, 3500), (1, 3600))
    accesses = [access | {"resourceName": str(name), "timestamp": time} for name, time in times]
    path = written(tmp_path / "a.log", accesses)
    aclog("usage-index", "--accesses", path, "--log", log, *index_of(tmp_path)).ok()
    with UsageIndex.open(tmp_path / "index") as index:
        lives, used = index.lives(), index.used(0, 0)
        names = [text["resourceName"] for text in index.texts(range(3))]
    assert names == ["1", "2", "2"]
    assert lives.begins.tolist() == [1_000_000, 1_000_000, 3_000_000]
    assert lives.is_open.tolist() == [True, False, True]
    assert lives.ends[1] == 2_000_000
    assert used.matched.tolist() == [1, 1, 1]


def test_a_rule_used_before_the_checkpoint_of_its_log_is_not_unused(tmp_path):
    """After the first run, retention has removed the beginning of the log: the second one cannot judge older uses."""
    day, accesses = 86_400_000, tmp_path / "a.log"
    log, where = write_log(tmp_path / "metadata", [acl(1), acl(2)], times=[0]), index_of(tmp_path)
    access = ACCESS | {"principal": "User:alice"}

    def taken(*uses):
        lines = [access | {"resourceName": name, "timestamp": number * day + 1} for name, number in uses]
        aclog("usage-index", "--accesses", written(accesses, lines), "--log", log, *where).ok()

    def answers():
        said = aclog("unused", "--log", log, *where, "--days", 8, "--gap", "2d", "--format", "jsonl")
        rows = [json.loads(line) for line in said.lines]
        return {row["resourceName"]: (row["answer"], row["removable"]) for row in rows}

    taken(("2", 10_000), ("2", 10_001))
    shutil.rmtree(log)
    log.mkdir()
    provenance = Provenance(end_offset=2, epoch=1, timestamp=10_007 * day)
    write_checkpoint(Image(acls=AclsImage.empty().apply([acl(1), acl(2)]), provenance=provenance), log)
    write_log(log, [acl(3)], base=2, times=[10_008 * day])
    uses = [("2", number) for number in range(10_002, 10_009)]
    taken(("1", 10_004), *uses)
    assert answers() == {"1": ("NOT_JUDGED", False), "2": ("NEEDED", False), "3": ("NOT_JUDGED", False)}


@pytest.mark.parametrize(
    ("line", "why"),
    [('{"principal": 1', "MALFORMED 1"), (json.dumps(ACCESS | {"timestamp": None}), "without a time 1")],
)
def test_takes_nothing_of_what_it_does_not_understand(tmp_path, acls, line, why):
    log, where = tmp_path / "a.log", index_of(tmp_path)
    log.write_text(f"{line}\n")
    said = aclog("usage-index", "--accesses", log, "--acls", acls, *where)
    assert said.code == 2
    assert "no line of 1 file is an access with a time" in said.complaint
    assert why in said.complaint
    written(log, days(10))
    aclog("usage-index", "--accesses", log, "--acls", acls, *where).ok()
    assert matched(tmp_path)["User:a", "orders"] == 1


def test_takes_no_log_that_holds_denials_alone(tmp_path, acls):
    """Kafka at INFO logs nothing else: by such a log every rule is unused."""
    log, where = written(tmp_path / "a.log", days(10, 11, loggedDecision="DENIED")), index_of(tmp_path)
    said = aclog("usage-index", "--accesses", log, "--acls", acls, *where)
    assert said.code == 2
    assert "all 2 accesses of 1 file are denials" in said.complaint
    written(log, [*days(10, 11, loggedDecision="DENIED"), *days(12, loggedDecision="ALLOWED")])
    aclog("usage-index", "--accesses", log, "--acls", acls, *where).ok()
    assert matched(tmp_path)["User:a", "orders"] == 3


def test_refuses_the_log_of_another_cluster(tmp_path):
    accesses = written(tmp_path / "a.log", days(10))
    for name in ("one", "two"):
        directory = tmp_path / name / "__cluster_metadata-0"
        directory.mkdir(parents=True)
        write_log(directory, [acl(1)])
        (tmp_path / name / "meta.properties").write_text(f"version=1\ncluster.id={name}\nnode.id=1\n")
    run = ("usage-index", "--accesses", accesses, *index_of(tmp_path), "--log")
    aclog(*run, tmp_path / "one" / "__cluster_metadata-0").ok()
    for words in (run, ("unused", *index_of(tmp_path), "--log")):
        said = aclog(*words, tmp_path / "two" / "__cluster_metadata-0")
        assert said.code == 2
        assert "an index of cluster one, but these rules are of cluster two" in said.err


def test_coverage_tells_brokers_and_holes(tmp_path, acls):
    log = written(tmp_path / "a.log", [*days(10, 11, 14, broker="1"), *days(11, broker="2"), *days(10)])
    aclog("usage-index", "--accesses", log, "--acls", acls, *index_of(tmp_path)).ok()
    said = [
        aclog("coverage", *where, "--gap", "36h", "--format", "jsonl")
        for where in (index_of(tmp_path), ("--accesses", log))
    ]
    assert said[0].out == said[1].out
    assert [each.code for each in said] == [1, 1]
    ms = {day: 1_794_304_800_000 + (day - 10) * 86_400_000 for day in (10, 11, 14)}
    assert [tuple(json.loads(line).values()) for line in said[0].lines] == [
        (None, "LINES", ms[10], ms[10], 1, 1),
        (None, "HOLE", ms[10], ms[14], 0, 0),
        ("1", "LINES", ms[10], ms[11], 2, 2),
        ("1", "HOLE", ms[11], ms[14], 0, 0),
        ("1", "LINES", ms[14], ms[14], 1, 1),
        ("2", "LINES", ms[11], ms[11], 1, 1),
        ("2", "HOLE", ms[11], ms[14], 0, 0),
    ]
    text = aclog("coverage", "--accesses", log, "--gap", "36h").lines
    assert [line.split()[:-4] for line in text[1:4]] == [
        ["(not", "named)", "1", "1", "2026-11-10T10:00:00.000Z", "2026-11-10T10:00:00.000Z", "1"],
        ["1", "3", "3", "2026-11-10T10:00:00.000Z", "2026-11-14T10:00:00.000Z", "1"],
        ["2", "1", "1", "2026-11-11T10:00:00.000Z", "2026-11-11T10:00:00.000Z", "1"],
    ]
    assert [line.split()[-4:] for line in text[1:4]] == [
        ["96.0", "h", "from", "2026-11-10T10:00:00.000Z"],
        *[["72.0", "h", "from", "2026-11-11T10:00:00.000Z"]] * 2,
    ]
    assert text[5] == "1 line names no broker: a gap of a single broker among them cannot be seen"
    assert text[7:9] == [
        "gaps:",
        "  (not named): 2026-11-10T10:00:00.000Z to 2026-11-14T10:00:00.000Z (96.0 h)",
    ]
    assert aclog("coverage", "--accesses", log, "--gap", "2w").code == 0


@pytest.mark.parametrize("words", [[], ["--accesses", "a.log", "--index", "index"]])
def test_coverage_is_of_a_log_or_of_an_index(tmp_path, words):
    said = aclog("coverage", *words)
    assert said.code == 2
    assert "--accesses or --index: expected one of them" in said.err
