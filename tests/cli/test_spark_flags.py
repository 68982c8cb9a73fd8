"""The settings of a session that flags name, and outputs in other stores, without Spark."""

from pathlib import Path

import pytest

from aclog.cli.spark.flags import DELTA_CONFIGURATION, SessionFlags
from aclog.metalog.errors import ConfigError
from aclog.pipeline.output_directory import check_new, local_directory
from tests.support.cli.command import aclog


def test_packages_and_settings_of_a_session():
    delta = "io.delta:delta-spark_4.2_2.13:4.4.0"
    settings = SessionFlags(conf=["spark.a=b=c", "spark.jars.packages=x:y:1"], packages=[f"{delta},p:q:2"]).settings()
    assert settings["spark.a"] == "b=c"
    assert settings["spark.jars.packages"] == f"x:y:1,{delta},p:q:2"
    assert settings.items() >= DELTA_CONFIGURATION.items()
    own = SessionFlags(conf=["spark.sql.extensions=mine"], packages=[delta]).settings()
    assert own["spark.sql.extensions"] == "mine"


@pytest.mark.parametrize("text", ["spark.a", "a=b", "=b", "spark.sql.session.timeZone=Europe/Berlin"])
def test_what_is_no_setting_of_spark(text):
    with pytest.raises(ConfigError, match="--conf"):
        SessionFlags(conf=[text]).settings()


def test_where_an_output_goes(tmp_path):
    assert check_new(f"{tmp_path.as_uri()}/a%20b") == tmp_path / "a b"
    assert check_new("s3a://lake/x/") == check_new(Path("s3a://lake/x")) == "s3a://lake/x"
    with pytest.raises(ConfigError, match="no such directory"):
        check_new(f"{tmp_path.as_uri()}/missing/x")


def test_a_database_is_in_files_alone(tmp_path):
    assert local_directory(tmp_path.as_uri(), "--index", "a database") == tmp_path
    with pytest.raises(
        ConfigError, match=r"--index s3a://lake/x: expected a directory of this machine, .*: a database"
    ):
        local_directory("s3a://lake/x", "--index", "a database")
    for arguments in (("ingest", tmp_path, "--append", "--out"), ("usage-index", "--accesses", tmp_path, "--index")):
        refused = aclog("spark", *arguments, "s3a://lake/x")
        assert refused.code == 2
        assert "s3a://lake/x: expected a directory of this machine" in refused.err
