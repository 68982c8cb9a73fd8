"""Output and refusals of `aclog spark usage`."""

import json
import re
from datetime import UTC, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aclog.authorizer.acl import object_of_rule
from aclog.authorizer.settings import Settings
from aclog.cli.spark.commands import Policy, usage_command
from aclog.cli.spark.flags import UsageFlags
from aclog.metalog.errors import ConfigError
from aclog.usage.accesses.access_log import find_accesses, read_part
from tests.pipeline.usage.test_report import START, acl, frame_of, rules_of, standing
from tests.support.cli.command import aclog
from tests.support.spark.access_logs import audit_text

LINE = '{"principal":"User:a","host":"10.0.0.1","operation":"READ","resourceType":"TOPIC","resourceName":"orders"'


def test_what_is_said(spark, tmp_path, capsys):
    log, out = tmp_path / "log.jsonl", tmp_path / "out"
    times = [START, START - timedelta(hours=1), START - timedelta(days=4)]
    lines = [f'{LINE},"timestamp":"{time.isoformat()}"}}' for time in times]
    log.write_text("\n".join([*lines, f"{LINE}}}", "bad", lines[0].replace("orders", "pay")]))
    rules = rules_of(standing(acl("User:a", "orders"), acl("User:*", "orders"), acl("User:b", "pay", denies=True)))
    usage_command(spark, str(log), out, Policy(rules=rules, settings=Settings()), flags=UsageFlags(days=3))
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "window of 3 days: 2026-02-26T12:00:00Z to 2026-03-01T12:00:00Z",
        "",
        "accesses  status",
        "3         evaluated against the ACLs, for the verdicts below",
        "1         outside the window",
        "1         without a timestamp",
        "5         read in total",
        "",
        "ACLs  removable  verdict        meaning",
        "1     1          NEVER_MATCHED  no access matched the ACL",
        "0     0          NEVER_NEEDED   every access would be decided the same without it",
        "0     0          NEEDED         an access would be decided differently without it",
        "2     0          NOT_JUDGED     not in force for the entire window, or its use is unknown",
        "",
        (
            "1 access could not be read or decided (NO_TIME 1; unknown broker at an unknown hour): "
            "2 ACLs that may apply to them are NOT_JUDGED"
        ),
        "",
        f"{out}/rules: all removable ACLs can be removed together",
        "2 ACLs are not judged:",
        *(
            f"  NOT_JUDGED      ALLOW {who} READ on TOPIC LITERAL 'orders' from *: may apply to 1 access that could "
            "not be read or decided"
            for who in ("User:a", "User:*")
        ),
        "",
        "denied  last                  principal  host      operation  resource   rule",
        "1       2026-03-01T12:00:00Z  User:a     10.0.0.1  READ       TOPIC:pay  DefaultDeny",
    ]
    assert said.err.splitlines() == [
        "aclog: note: the source has no history: all of its ACLs are assumed to be in force in the whole window",
        (
            "aclog: warning: no accesses on 2026-02-26 to 2026-02-28 (3 of the 4 UTC dates of the window, partial ones "
            "included): the cluster was idle, or the log is incomplete"
        ),
        "aclog: warning: 1 line skipped: no accesses",
    ]
    assert [spark.read.parquet(str(out / name)).count() for name in ("rules", "denied", "holes")] == [3, 1, 3]
    with pytest.raises(ConfigError, match="out: exists already"):
        usage_command(spark, str(log), out, Policy(rules=rules, settings=Settings()), flags=UsageFlags(days=3))


def test_no_output_if_no_access_has_a_time(spark, tmp_path):
    frame_of(spark, [("User:a", "READ", "orders", None)]).write.parquet(str(tmp_path / "log"))
    policy = Policy(rules=rules_of([]), settings=Settings())
    with pytest.raises(ConfigError, match="no access has a timestamp"):
        usage_command(spark, str(tmp_path / "log"), tmp_path / "out", policy, flags=UsageFlags(days=3))
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_lines_that_tell_of_accesses_and_cannot_be_read(spark, tmp_path, capsys):
    log, out = tmp_path / "log.jsonl", tmp_path / "out"
    good = f'{LINE},"timestamp":"{START.isoformat()}"}}'
    log.write_text(
        "\n".join([good, good.replace("User:a", "User:b").replace('"orders"', "5"), good[:50].replace("a", "c")])
    )
    rules = rules_of(standing(*(acl(f"User:{name}", "orders") for name in "abcd")))
    usage_command(spark, str(log), out, Policy(rules=rules, settings=Settings()), flags=UsageFlags(days=3))
    printed = " ".join(capsys.readouterr().out.split())
    unread = r"2 accesses could not be read or decided \(MALFORMED 2; unknown broker [^)]*\): 3 ACLs"
    assert re.search(unread, printed)
    log.write_text("\n".join([good, good.replace("User:a", "User:b").replace('"orders"', "5")]))
    usage_command(spark, str(log), tmp_path / "b", Policy(rules=rules, settings=Settings()), flags=UsageFlags(days=3))
    found = spark.read.parquet(str(tmp_path / "b/rules")).select("principal", "answer", "unread").collect()
    assert {row.principal: (row.answer, row.unread) for row in found} == {
        "User:a": ("NEEDED", 0), "User:b": ("NOT_JUDGED", 1), "User:c": ("NEVER_MATCHED", 0),
        "User:d": ("NEVER_MATCHED", 0),
    }  # fmt: skip


@pytest.mark.parametrize("form", ["lines", "plain", "columns"])
def test_denials_alone_are_judged_as_without_spark(spark, tmp_path, capsys, form):
    denial = audit_text(name="orders")
    log = tmp_path / "kafka-authorizer.log"
    rules = standing(acl("User:a", "orders"), acl("User:*", "orders"), acl("User:b", "pay", denies=True))
    acls = tmp_path / "acls.jsonl"
    acls.write_text("".join(f"{json.dumps(object_of_rule(each.rule.acl))}\n" for each in rules))
    for number, texts in enumerate([[denial, denial], [denial, denial.replace("is Denied", "is Allowed")]]):
        log.write_text("".join(f"{text}\n" for text in texts))
        here = aclog("usage", "--accesses", log, "--acls", acls, "--format", "jsonl").ok()
        table = str(tmp_path / f"{form}-{number}")
        rows = find_accesses([str(log)], UTC).parts
        accesses = pa.Table.from_batches([batch.rows for part in rows for batch in read_part(part)])
        if form == "plain":  # which workers read on their own
            pq.write_table(accesses, f"{table}.parquet")
        elif form == "columns":  # which Spark reads
            pq.write_table(accesses.rename_columns({"principal": "PRINCIPAL"}), f"{table}.parquet")
        else:
            objects = (row | {"timestamp": row["timestamp"].isoformat()} for row in accesses.to_pylist())
            (tmp_path / f"{form}-{number}.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in objects))
        table += ".jsonl" if form == "lines" else ".parquet"
        out = tmp_path / f"out-{form}-{number}"
        policy = Policy(rules=rules_of(rules), settings=Settings())
        usage_command(spark, table, out, policy, flags=UsageFlags(days=90))
        noted = capsys.readouterr().err
        keys = ("principal", "permissionType", "answer", "removable")
        ours = [tuple(json.loads(line)[key] for key in keys) for line in here.lines]
        theirs = [tuple(row[key] for key in keys) for row in pq.read_table(out / "rules").to_pylist()]
        assert sorted(ours) == sorted(theirs)
        assert any(answer == "NOT_JUDGED" for *_, answer, _ in theirs) is (number == 0)
        assert any(removable for *_, removable in theirs) is (number == 1)
        assert ("no ALLOW is judged" in noted) is ("no ALLOW is judged" in here.err) is (number == 0)
