"""`pytest --aclog FILE`: each case of tests of rules as an item of pytest."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.test_diff_follow import aclog_rule

TESTS = """\
rules: rules.jsonl
tests:
- name: bob
  principal: User:bob
  can: {READ: [topic:t]}
  cannot: {READ: [topic:pii.*]}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "rules.jsonl").write_text(aclog_rule("t", "User:bob"))
    (tmp_path / "guard.yaml").write_text(TESTS)
    (tmp_path / "test_own.py").write_text("def test_own(): pass\n")
    return tmp_path


def run_pytest(directory: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run pytest in a process of its own: it is configured by nothing of ours."""
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider", "-q", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.server
def test_each_case_is_an_item_with_the_screen_of_a_failure(repository: Path) -> None:
    done = run_pytest(repository, "--aclog", "guard.yaml", "-vv", "--junitxml", "report.xml")
    assert done.returncode == 0, done.stdout
    assert "guard.yaml::bob:5: User:bob can READ topic:t PASSED" in done.stdout
    assert "guard.yaml::bob:6: User:bob cannot READ topic:pii.* PASSED" in done.stdout
    assert "3 passed" in done.stdout
    assert len(list(ET.parse(repository / "report.xml").iter("testcase"))) == 3

    (repository / "rules.jsonl").write_text(aclog_rule("pii.card", "User:bob"))
    done = run_pytest(repository, "--aclog", "guard.yaml")
    assert done.returncode == 1
    assert "2 failed, 1 passed" in done.stdout
    assert "FAILED guard.yaml:6: bob" in done.stdout
    assert "found: User:bob: READ on TOPIC pii.card is allowed, from any host" in done.stdout
    assert "the nearest change:" in done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.server
def test_files_in_the_settings_and_what_cannot_be_read(repository: Path) -> None:
    (repository / "pytest.ini").write_text("[pytest]\naclog = guard.yaml\n")
    done = run_pytest(repository, "-n", "2")
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout

    (repository / "rules.jsonl").unlink()
    done = run_pytest(repository)
    assert "1 passed, 2 errors" in done.stdout
    assert "rules.jsonl" in done.stdout
    assert "Traceback" not in done.stdout

    (repository / "guard.yaml").write_text("tests:\n- cann: {}\n")
    done = run_pytest(repository)
    assert done.returncode == 2
    assert "did you mean" in done.stdout


@pytest.mark.process
def test_nothing_of_aclog_is_imported_before_a_file_is_collected() -> None:
    code = "import sys, pytest, aclog.pytest_plugin; print(sorted(m for m in sys.modules if m.startswith('aclog')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['aclog', 'aclog.pytest_plugin']"


def test_pytest_finds_the_plugin_where_aclog_is_installed() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\naclog = "aclog.pytest_plugin"' in text
