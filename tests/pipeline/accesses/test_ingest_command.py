"""Output and refusals of `aclog spark ingest`."""

import pytest

from aclog.cli.spark.flags import IngestFlags
from aclog.cli.spark.ingest import column_pairs, ingest_command
from aclog.metalog.errors import ConfigError
from tests.support.spark.access_logs import audit_text


def test_what_is_said(spark, tmp_path, capsys):
    path, out = tmp_path / "a.log", tmp_path / "out"
    path.write_text("\n".join([*[audit_text()] * 3, "", "bad", "worse", audit_text()[:80]]))
    ingest_command(spark, [str(path)], out, IngestFlags())
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "lines  what",
        "3      accesses",
        "2      rejected: NO_HEAD",
        "1      rejected: TORN",
        "1      blank",
        "7      read",
    ]
    assert said.err == f"aclog: warning: 3 of 7 lines are not accesses: see {out}/rejects\n"
    with pytest.raises(ConfigError, match="out: exists already"):
        ingest_command(spark, [str(path)], out, IngestFlags())


def test_pairs_of_columns():
    assert column_pairs(["principal=user", "host=a=b"]) == {"principal": "user", "host": "a=b"}
    for bad in (["principal"], ["=x"], ["host="], ["host=a", "host=b"]):
        with pytest.raises(ConfigError, match="--column"):
            column_pairs(bad)
