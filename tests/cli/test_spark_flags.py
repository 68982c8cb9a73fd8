"""The settings of a session that flags name, and outputs in other stores, without Spark."""

from pathlib import Path

import pytest

from aclog.cli.spark.flags import DELTA_CONFIGURATION, SessionFlags
from aclog.metalog.errors import ConfigError
from aclog.pipeline.output_directory import check_new


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


def test_an_output_in_another_store_is_refused(tmp_path):
    assert check_new(Path(tmp_path.as_uri()) / "a b") == tmp_path / "a b"
    with pytest.raises(ConfigError, match=r"--out s3a://lake/x: expected a directory of this machine"):
        check_new(Path("s3a://lake/x"))
