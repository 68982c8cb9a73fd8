"""What `aclog spark usage` writes, prints and refuses."""

from datetime import timedelta

import pytest

from aclog.cli.spark.usage import usage_command
from aclog.metalog.errors import ConfigError
from aclog.pipeline.decisions.bulk_authorizer import Settings
from tests.pipeline.usage.test_report import START, acl, frame_of, rules_of, standing

LINE = '{"principal":"User:a","host":"10.0.0.1","operation":"READ","resourceType":"TOPIC","resourceName":"orders"'


def test_what_is_said(spark, tmp_path, capsys):
    log, out = tmp_path / "log.jsonl", tmp_path / "out"
    times = [START, START - timedelta(hours=1), START - timedelta(days=4)]
    lines = [f'{LINE},"timestamp":"{time.isoformat()}"}}' for time in times]
    log.write_text("\n".join([*lines, f"{LINE}}}", "bad", lines[0].replace("orders", "pay")]))
    rules = rules_of(standing(acl("User:a", "orders"), acl("User:*", "orders"), acl("User:b", "pay", denies=True)))
    usage_command(spark, str(log), out, rules, Settings(), own_time=False, window_days=3)
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "3 days: 2026-02-26T12:00:00Z to 2026-03-01T12:00:00Z",
        "",
        "accesses  what",
        "3         decided, and counted for rules",
        "1         outside of the window",
        "1         without timestamp",
        "5         read",
        "",
        "rules  can go  answer",
        "1      1       NEVER_MATCHED",
        "2      1       NEVER_NEEDED",
        "0      0       NEEDED",
        "0      0       NOT_JUDGED",
        "",
        f"{out}/rules: all rules that can go, can go together",
        "",
        "denied  last                  principal  host      operation  resource   rule",
        "1       2026-03-01T12:00:00Z  User:a     10.0.0.1  READ       TOPIC:pay  DefaultDeny",
    ]
    assert said.err.splitlines() == [
        "aclog: note: it is not known since when the rules are in force: all are taken as in force in the whole window",
        "aclog: warning: no access at all on 3 of 4 days: 2026-02-26 to 2026-02-28: unused or not logged",
        "aclog: warning: 1 lines are no accesses, and were left out",
    ]
    assert [spark.read.parquet(str(out / name)).count() for name in ("rules", "denied", "holes")] == [3, 1, 3]
    with pytest.raises(ConfigError, match="out: exists already"):
        usage_command(spark, str(log), out, rules, Settings(), own_time=False, window_days=3)


def test_nothing_is_left_where_no_access_has_a_time(spark, tmp_path):
    frame_of(spark, [("User:a", "READ", "orders", None)]).write.parquet(str(tmp_path / "log"))
    with pytest.raises(ConfigError, match="no access has a timestamp"):
        usage_command(
            spark, str(tmp_path / "log"), tmp_path / "out", rules_of([]), Settings(), own_time=False, window_days=3
        )
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
