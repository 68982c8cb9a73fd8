"""The recipes of docs/pull-requests.md: their very steps, run on a repository of two commits."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cli.repository import Repository
from tests.support.review.pull_requests import PULL_REQUESTS, apply, write_main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/pull-requests.md").read_text()
WIDENED, NOTHING = PULL_REQUESTS[0], PULL_REQUESTS[-1]


pytestmark = pytest.mark.process


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Return the clone of a repository whose last commit is a pull request, as a job checks it out."""
    upstream = write_main(tmp_path / "upstream")
    upstream.git("switch", "--quiet", "--create", "change")
    apply(WIDENED, upstream.path)
    upstream.git("commit", "--quiet", "--all", "--message", "change")
    clone = Repository.create(tmp_path / "clone")
    clone.git("remote", "add", "origin", str(upstream.path))
    clone.git("fetch", "--quiet", "origin")
    clone.git("switch", "--quiet", "--detach", "origin/change")
    return clone.path


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    """Return a directory with our `aclog`, and a `gh` that keeps what it is asked."""
    directory = tmp_path / "bin"
    directory.mkdir()
    (directory / "aclog").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m aclog "$@"\n')
    (directory / "gh").write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$*" >> "{tmp_path}/gh.txt"\n'
        f'case "$*" in *--paginate*) cat "{tmp_path}/comment" 2>/dev/null ;; esac\nexit 0\n'
    )
    for program in directory.iterdir():
        program.chmod(0o755)
    return directory


def _run(script: str, work: Path, binaries: Path, environment: Mapping[str, str] | None = None) -> Any:
    path = f"{binaries}:{os.environ['PATH']}"
    known = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **(environment or {})}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=work, env=known, capture_output=True, text=True, check=False)


def _block(language: str, mark: str) -> str:
    """Return the code block of the page that has a mark."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (found,) = [block for block in blocks if mark in block]
    return str(found)


class TestAction:
    """Runs the steps of action.yml as the runner does: expressions filled in, outputs passed on."""

    ACTION = yaml.safe_load((ROOT / "action.yml").read_text())

    def _step(self, name: str) -> dict[str, Any]:
        return next(step for step in self.ACTION["runs"]["steps"] if step["id"] == name)

    def _environment(self, name: str, values: Mapping[str, str]) -> dict[str, str]:
        found = {}
        for key, text in self._step(name).get("env", {}).items():
            (expression,) = re.fullmatch(r"\$\{\{ (.*) \}\}", text).groups()
            found[key] = values[expression]
        return found

    def _review(self, work: Path, binaries: Path, temporary: Path, options: str) -> tuple[Any, dict[str, str]]:
        (temporary / "aclog").mkdir(parents=True)
        (temporary / "aclog/bin").symlink_to(binaries)
        values = {
            "inputs.path": "kafka",
            "inputs.base || format('origin/{0}', github.base_ref)": "origin/main",
            "inputs.options": options,
        }
        files = {"RUNNER_TEMP": temporary, "GITHUB_OUTPUT": temporary / "out", "GITHUB_STEP_SUMMARY": temporary / "sum"}
        environment = {**self._environment("review", values), **{key: str(path) for key, path in files.items()}}
        done = _run(self._step("review")["run"], work, binaries, environment)
        lines = (temporary / "out").read_text().splitlines()
        return done, dict(line.split("=", 1) for line in lines)

    def test_a_review_is_in_the_log_the_summary_and_the_outputs(self, work, binaries, tmp_path):
        done, outputs = self._review(work, binaries, tmp_path / "runner", "--topics topics.txt --fail-on gained")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("aclog review: FAILS: access gained: 1 row, lost: 0 rows")
        assert (tmp_path / "runner/sum").read_text() == Path(outputs["markdown"]).read_text()
        assert json.loads(Path(outputs["sarif"]).read_text())["version"] == "2.1.0"
        verdict = _run(self._step("verdict")["run"], work, binaries, {"CODE": outputs["code"]})
        assert verdict.returncode == 1

    def test_what_cannot_be_reviewed_fails_and_no_earlier_review_stays(self, work, binaries, tmp_path):
        done, outputs = self._review(work, binaries, tmp_path / "runner", "--topics gone.txt")
        assert "gone.txt" in done.stderr
        assert Path(outputs["markdown"]).read_text() == (
            "### aclog review: FAILS: there is no review: see the log of the job\n<!-- aclog review -->\n"
        )
        assert _run(self._step("verdict")["run"], work, binaries, {"CODE": outputs["code"]}).returncode == 2

    @pytest.mark.parametrize("comment", ["", "77\n"])
    def test_there_is_one_comment_that_is_updated(self, work, binaries, tmp_path, comment):
        (tmp_path / "comment").write_text(comment)
        values = {
            "inputs.token": "t",
            "github.repository": "o/r",
            "github.event.pull_request.number": "5",
            "steps.review.outputs.markdown": "review.md",
        }
        done = _run(self._step("comment")["run"], work, binaries, self._environment("comment", values))
        assert done.returncode == 0, done.stderr
        asked, call = (tmp_path / "gh.txt").read_text().rsplit("\n", 2)[:2]
        assert "owner=o --raw-field name=r --field number=5" in asked
        assert "viewerDidAuthor" in asked
        place = "PATCH repos/o/r/issues/comments/77" if comment else "POST repos/o/r/issues/5/comments"
        assert call == f"api --silent --method {place} --field body=@review.md"

    def test_every_input_is_used_and_the_recipe_gives_none_but_these(self):
        text = (ROOT / "action.yml").read_text()
        assert all(f"inputs.{name}" in text for name in self.ACTION["inputs"])
        (step,) = [
            step
            for step in yaml.safe_load(_block("yaml", "aclog/aclog@main"))["jobs"]["review"]["steps"]
            if "aclog" in step["uses"]
        ]
        assert set(step["with"]) <= set(self.ACTION["inputs"])


def test_the_step_that_protects_a_prefix(work: Path, binaries: Path) -> None:
    step = yaml.safe_load(_block("yaml", "checks"))[0]["run"]
    (work / "aclog.toml").write_text(
        _block("toml", 'no-gain = ["topic:payments.*", "cluster"]').replace("payments.", "orders")
    )
    done = _run(step, work, binaries, {"GITHUB_BASE_REF": "main"})
    assert done.returncode == 1, done.stderr
    assert "refuted: at least one principal gains access to topic:orders*" in done.stdout
    assert "PROVED: no principal gains access to cluster" in done.stdout
    assert "the change modifies the checks themselves: aclog.toml" in done.stdout


def test_the_job_of_gitlab(work: Path, binaries: Path) -> None:
    job = yaml.safe_load(_block("yaml", "merge_request_event"))["kafka-rules"]
    base = subprocess.run(["git", "rev-parse", "origin/main"], cwd=work, capture_output=True, text=True, check=True)
    environment = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base.stdout.strip()}
    done = _run("\n".join(job["script"]), work, binaries, environment)
    assert done.returncode == 0, done.stderr
    assert "GAINED  User:orders-etl" in done.stdout
    assert all((work / path).stat().st_size for path in job["artifacts"]["paths"])


def test_the_line_of_jenkins(work: Path, binaries: Path) -> None:
    (script,) = re.findall(r"sh '(.*)'", _block("groovy", "sh '"))
    done = _run(script, work, binaries, {"CHANGE_TARGET": "main"})
    assert done.returncode == 0, done.stderr
    assert (
        "aclog review: `User:orders-etl` gains `READ`, `DESCRIBE` on topics `orders*` except `orders.*`"
        in (work / "review.md").read_text()
    )


def test_the_hooks_of_pre_commit(work: Path, binaries: Path) -> None:
    """By pre-commit itself; our aclog stands for the one that it would install."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    named = yaml.safe_load(_block("yaml", "hooks:"))["repos"][0]["hooks"]
    assert {hook["id"] for hook in named} == {hook["id"] for hook in hooks}
    local = [{**hook, "language": "system"} for hook in hooks]
    (work / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [{"repo": "local", "hooks": local}]}))
    (work / "aclog.toml").write_text(
        '[source]\nacls = "kafka"\n[test]\nfiles = ["tests/*.yaml"]\n[review]\nfail-on = ["lost"]\n'
    )
    subprocess.run(["git", "add", "--all"], cwd=work, check=True)
    script = f'"{sys.executable}" -m pre_commit run --all-files --verbose --color never'
    done = _run(script, work, binaries, {"PRE_COMMIT_HOME": str(work.parent / "pre-commit")})
    assert done.returncode == 0, done.stdout
    apply(PULL_REQUESTS[1], work)
    done = _run(script, work, binaries, {"PRE_COMMIT_HOME": str(work.parent / "pre-commit")})
    assert done.returncode == 1
    assert re.search(r"aclog test\.*Failed", done.stdout), done.stdout
