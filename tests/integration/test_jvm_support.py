"""Without Java or Maven the tests that need them fail, and say why."""

from pathlib import Path

import pytest

from tests.support.kafka import jvm


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(jvm.JvmMissingError, match=r"`mvn` is not installed: .* a JDK 17 and Maven"):
        jvm.program("mvn")


def test_jars_that_cannot_be_had_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mvn").write_text("#!/bin/sh\necho no such version; exit 1\n")
    (tmp_path / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(jvm, "BUILD", tmp_path / "build")
    with pytest.raises(jvm.JvmMissingError, match=r"could not get the jars of Kafka 0\.0\.0:\nno such version"):
        jvm.jar_directory("0.0.0")
    assert [path.name for path in (tmp_path / "build").iterdir()] == ["kafka-0.0.0.lock"]


def test_a_tool_runs(tmp_path: Path) -> None:
    done = jvm.run_tool("org.apache.kafka.tools.DumpLogSegments", "--version")
    assert jvm.KAFKA_VERSION in done.out
