"""The settings of a session that flags name, and outputs in other stores, without Spark."""

from pathlib import Path

import pytest

from aclog.cli.spark.flags import DELTA_CONFIGURATION, SessionFlags
from aclog.cli.spark.streams import StreamFlags
from aclog.metalog.errors import ConfigError
from aclog.pipeline import storage
from aclog.pipeline.output_directory import Mode, check_new, file_uri, local_directory, server_place
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


LOG = Path(__file__).parents[1] / "data/kafka-4.3.1-small/__cluster_metadata-0"
PLACES = {
    "s3a://lake/x/": "s3a://lake/x",
    "hdfs:///user/x": "hdfs:///user/x",
    "hdfs:/user/x": "hdfs:///user/x",
    "hdfs://nn:8020/x": "hdfs://nn:8020/x",
    "abfss://c@a.dfs.core.windows.net/x": "abfss://c@a.dfs.core.windows.net/x",
}


@pytest.mark.parametrize(
    "uri", ["s3a://AKIA:SECRET@bucket/out", "s3a://AKIA:SEC/RET@bucket/out", "hdfs://user:SECRET@host/out"]
)
def test_credentials_in_an_address_are_refused_and_not_printed(uri, tmp_path):
    (tmp_path / "acls").write_text("")
    source, requests = ("--acls", tmp_path / "acls"), ("--requests", tmp_path / "acls")
    for arguments in (
        ("history", "--log", LOG, "--out", uri),
        ("history", "--log", uri, "--out", tmp_path / "out"),
        ("authorize", *requests, *source, "--out", uri),
        ("simulate", *requests, *source, "--to-log", uri, "--out", tmp_path / "out"),
        ("usage", *requests, "--log", uri, "--out", tmp_path / "out"),
    ):
        refused = aclog("spark", *arguments, "--master", "local[no session is needed]")
        assert (refused.code, refused.lines) == (2, [])
        assert "it may hold credentials" in refused.err
        assert "AKIA" not in refused.err
        assert "SEC" not in refused.err


@pytest.mark.parametrize("name", ["a[b", "a]", "a{b", "a*", "a?b", "a\\b"])
def test_characters_of_globs_in_an_output_are_refused(name, tmp_path):
    """Spark writes to such a path, and reads another one."""
    for out in (tmp_path / name, f"hdfs://lake/{name}/out"):
        with pytest.raises(ConfigError, match=r"--out .*: has '.+', which is a part of a pattern \(a glob\)"):
            check_new(out)
    for command in (("ingest", tmp_path, "--append"), ("follow", "--requests", tmp_path, "--log", LOG)):
        refused = aclog("spark", *command, "--out", tmp_path / name, "--master", "local[no session is needed]")
        assert refused.code == 2
        assert "which is a part of a pattern (a glob)" in refused.complaint
    assert not [*tmp_path.iterdir()]


def test_the_scheme_of_a_file_in_capital_letters(tmp_path):
    assert check_new(f"FILE://{tmp_path}/x") == tmp_path / "x"
    assert storage.local_path(f"FILE:{tmp_path}/x") == str(tmp_path / "x")
    assert server_place("FILE:/tmp/x", "--out") == "file:/tmp/x"
    assert file_uri("FILE:///x") == "file:///x"
    assert file_uri("S3A://lake/x") == "S3A://lake/x"


def test_where_an_output_goes(tmp_path):
    assert check_new(f"{tmp_path.as_uri()}/a%20b") == tmp_path / "a b"
    for name, place in PLACES.items():
        assert check_new(name) == place
    with pytest.raises(ConfigError, match="lost slashes"):
        check_new(Path("s3a://lake/x"))
    with pytest.raises(ConfigError, match="expected file:///PATH"):
        check_new("file://host/x")
    with pytest.raises(ConfigError, match="no such directory"):
        check_new(f"{tmp_path.as_uri()}/missing/x")


def test_modes_that_a_command_does_not_have(tmp_path):
    (tmp_path / "acls").write_text("")
    source, requests = ("--acls", tmp_path / "acls"), ("--requests", tmp_path / "acls")
    for arguments, text in (
        (("history", "--log", LOG, "--mode", "append"), "a history is that of the whole log"),
        (("usage", *requests, *source, "--mode", "append"), "a report is that of a whole window"),
        (("simulate", *requests, *source, "--to-log", LOG, "--mode", "append"), "a simulation is that of all"),
        (("ingest", LOG, "--mode", "append"), "expected --append, which adds each line once"),
        (("ingest", LOG, "--append", "--mode", "overwrite"), "--mode overwrite: not with --append"),
        (("authorize", *requests, *source, "--as", "ocsf", "--mode", "append"), "not with --as"),
        (("authorize", *requests, *source, "--mode", "append"), "expected a directory that this command has written"),
    ):
        out = tmp_path / ("acls" if "--as" not in arguments and arguments[0] == "authorize" else "out")
        refused = aclog("spark", *arguments, "--out", out, "--master", "local[no session is needed]")
        assert (refused.code, refused.lines) == (2, []), refused
        assert text in refused.err
    assert check_new(tmp_path, Mode.APPEND) == tmp_path


def test_a_database_is_in_files_alone(tmp_path):
    assert local_directory(tmp_path.as_uri(), "--log", "a database") == tmp_path
    with pytest.raises(ConfigError, match=r"--log s3a://lake/x: expected a directory of this machine, .*: a database"):
        local_directory("s3a://lake/x", "--log", "a database")
    refused = aclog("spark", "usage-index", "--accesses", tmp_path, "--index", "gs://lake/x")
    assert refused.code == 2
    assert "an index in a store of gs: is not supported: expected a directory of this machine, s3://" in refused.err


def test_flags_of_a_stream(tmp_path):
    (tmp_path / "client.properties").write_text("security.protocol=SSL\n")
    for words, text in (
        (("--interval", "0"), "--interval 0: expected seconds from 0.001 to 86400"),
        (("--log-delay", "-1"), "--log-delay -1: expected seconds"),
        (("--lost-within", "0"), "--lost-within 0: expected seconds from 0.001"),
        (("--source-option", "x"), "--source-option 'x': expected KEY=VALUE"),
        (("--column", "x"), "expected OURS=THEIRS"),
        (("--requests-command-config", tmp_path / "client.properties"), "expected --requests kafka://HOST:PORT/TOPIC"),
    ):
        refused = aclog("spark", "follow", "--requests", tmp_path, "--log", LOG, "--out", tmp_path / "out", *words)
        assert (refused.code, refused.lines) == (2, []), refused
        assert text in refused.err
    flags = StreamFlags(
        requests="kafka://localhost:9092/x",
        requests_command_config=tmp_path / "client.properties",
        source_option=["maxOffsetsPerTrigger=7"],
    )
    assert flags.options() == {"kafka.security.protocol": "SSL", "maxOffsetsPerTrigger": "7"}
