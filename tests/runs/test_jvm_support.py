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
    maven = tmp_path / "no-mvn"
    maven.write_text("#!/bin/sh\necho no such version; exit 1\n")
    maven.chmod(0o755)
    monkeypatch.setattr(jvm, "program", lambda _: str(maven))
    monkeypatch.setattr(jvm, "BUILD", tmp_path / "build")
    with pytest.raises(jvm.JvmMissingError, match=r"could not get the jars of Kafka 0\.0\.0:\nno such version"):
        jvm.jar_directory("0.0.0")
    assert [path.name for path in (tmp_path / "build").iterdir()] == ["kafka-0.0.0.lock"]
