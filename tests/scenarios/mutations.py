"""Twenty defects, put into a copy of the checkout one by one; its tests must fail on each.

    python -m tests.scenarios.mutations --tier check|test|all [--only N ...] [--out benchmarks/results/mutations.md]

The defects are those that an engineer would fear in each package, written by hand. Each has the few tests that are most
likely to see it: they run in a copy without the defect, where they must pass, and in one with it, from the tier `check`
up to the one asked for, until a test fails. A run that collects no test, cannot import one, or hangs judges nothing.

In the copies this module is a pytest plugin as well, which notes the tests that ran and the one that failed.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from attrs import Factory, define, field, frozen

from tests.support.kafka.jvm import ROOT

TIERS = ("check", "test", "all")
LINKED = ("jvm", "browser", "shells")
"""Directories of build/ that tests use and no mutation changes."""
RUN_SECONDS = 600
TEST_SECONDS = 240
"""A test that takes longer fails by its own timeout: a defect may be that something never ends."""
_STOP_SECONDS = 30
_PASSED = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
_NOTES = "ACLOG_MUTATION_NOTES"
"""The environment variable with the file of the plugin's notes."""


@frozen(kw_only=True)
class Mutation:
    """A defect: `old` occurs once in the file at `path`, and `new` takes its place."""

    number: int
    area: str
    what: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]
    """Files or node ids, those that are most likely to fail first."""

    def apply(self, text: str) -> str:
        """Return the mutated text of the file."""
        if text.count(self.old) != 1:
            raise ValueError(
                f"mutation {self.number}: expected its text once in {self.path}, not {text.count(self.old)}x"
            )
        return text.replace(self.old, self.new)


MUTATIONS = (
    Mutation(
        number=1,
        area="metalog (file log)",
        what="an append is acknowledged, and the mark published, without an fsync",
        path="aclog/metalog/filelog/file_log.py",
        old="            files.write_all(self._fd, data)\n            self._fsync(self._fd)\n",
        new="            files.write_all(self._fd, data)\n",
        tests=("tests/metalog/filelog/test_file_log.py",),
    ),
    Mutation(
        number=2,
        area="metalog (topic log)",
        what="an append is acknowledged though another writer's records stand at its offsets",
        path="aclog/metalog/topiclog/topic_log.py",
        old="        if data != written:\n",
        new="        if not data:\n",
        tests=("tests/metalog/topiclog/test_read_back.py",),
    ),
    Mutation(
        number=3,
        area="authorizer",
        what="a DENY of ALL is skipped when a request asks for any single operation",
        path="aclog/authorizer/index/layout.py",
        old="bits = ALL_OPERATIONS if operation == AclOperation.ALL else 1 << operation",
        new="bits = ALL_OPERATIONS if allow and operation == AclOperation.ALL else 1 << operation",
        tests=("tests/authorizer/test_index_golden.py", "tests/authorizer/test_engine_and_reference.py"),
    ),
    Mutation(
        number=4,
        area="credentials",
        what="a SCRAM credential of 4,095 iterations is accepted",
        path="aclog/credentials/scram.py",
        old="if upsertion.iterations < MIN_ITERATIONS:",
        new="if upsertion.iterations < MIN_ITERATIONS - 1:",
        tests=("tests/credentials/test_scram_control.py",),
    ),
    Mutation(
        number=5,
        area="snapshots",
        what="a checkpoint has its name while its content is still being written",
        path="aclog/snapshots/checkpoints.py",
        old="        with files.written_whole(path) as fd:\n            for batch in checkpoint_batches(image):\n",
        new='        with path.open("wb", buffering=0) as file:\n            fd = file.fileno()\n'
        "            for batch in checkpoint_batches(image):\n",
        tests=("tests/snapshots/test_checkpoint_writer.py",),
    ),
    Mutation(
        number=6,
        area="analysis",
        what="a rule of everyone changes, and principals with rules of their own are not compared: a gain is not seen",
        path="aclog/analysis/engine/exploration.py",
        old="return same_settings and self.old.of_everyone(root) == self.new.of_everyone(root)",
        new="return same_settings",
        tests=("tests/analysis/test_difference.py", "tests/analysis/test_differences_model.py"),
    ),
    Mutation(
        number=7,
        area="usage",
        what="the usage index counts an access at midnight on the day before",
        path="aclog/usage/counting.py",
        old="keys << _DAY_BITS | (times // DAY + _DAY_0)",
        new="keys << _DAY_BITS | ((times - 1) // DAY + _DAY_0)",
        tests=("tests/usage/test_log_counter.py", "tests/usage/index/test_usage_index.py"),
    ),
    Mutation(
        number=8,
        area="terminal",
        what="an escape sequence in a name reaches the terminal raw",
        path="aclog/terminal/output.py",
        old="    return printable(str(value))\n",
        new="    return str(value)\n",
        tests=("tests/cli/test_terminal_escapes.py",),
    ),
    Mutation(
        number=9,
        area="planning",
        what="an apply deletes an unmanaged ACL, which its journal does not own, without --adopt",
        path="aclog/planning/planner.py",
        old="    if unowned and not adopt:\n        raise _not_owned(_acls(unowned))\n",
        new="",
        tests=("tests/cli/planning/test_plan_and_apply.py",),
    ),
    Mutation(
        number=10,
        area="places",
        what="a plan is made from the answer of a broker that is one record behind",
        path="aclog/targets/cluster.py",
        old="applied >= mark - 1:",
        new="applied >= mark - 2:",
        tests=("tests/places/test_server_place.py",),
    ),
    Mutation(
        number=11,
        area="zookeeper",
        what="a write to a znode ignores its version, and undoes what another has written meanwhile",
        path="aclog/zookeeper/acl_store.py",
        old="return SetNode(path=before.path, data=znodes.encode_acls(entries), version=before.version)",
        new="return SetNode(path=before.path, data=znodes.encode_acls(entries), version=-1)",
        tests=(
            "tests/zkstore/authorizer/test_faults.py::test_a_conflicting_write_is_retried_on_the_current_acls",
            "tests/zkstore/authorizer/test_faults.py::test_many_writers_on_one_resource_lose_nothing",
        ),
    ),
    Mutation(
        number=12,
        area="server (early start)",
        what="a broker opens its other listeners, and is ready for everybody, before it has caught up",
        path="aclog/server/node.py",
        old="            while not await asyncio.to_thread(self.publisher.wait_ready, 0.5):\n                pass\n",
        new="",
        tests=(
            "tests/scenarios/nodes/test_early_start.py::test_a_broker_that_has_not_caught_up_admits_super_users_only",
        ),
    ),
    Mutation(
        number=13,
        area="server (controller write path)",
        what="an expired token is renewed: its expiry is compared with the time of the last record, not with the clock",
        path="aclog/server/controller/registrations.py",
        old="token, now = self._index.find(image.tokens, token_hmac), self.controller.clock()",
        new="token, now = self._index.find(image.tokens, token_hmac), image.timestamp",
        tests=("tests/nodes/controller/apis/test_tokens.py",),
    ),
    Mutation(
        number=14,
        area="client (observer)",
        what="an observer shows a record above the high-water mark: it counts the mark one too far",
        path="aclog/client/fetching.py",
        old="count = run.below(self.high_watermark)",
        new="count = run.below(self.high_watermark + 1)",
        tests=("tests/nodes/observer/test_fetching.py", "tests/nodes/observer/test_quorum_log.py"),
    ),
    Mutation(
        number=15,
        area="pipeline",
        what="a query of Spark for offsets below N reads N, too",
        path="aclog/pipeline/source/rows.py",
        old="number += isinstance(one, GreaterThan) - isinstance(one, LessThan)",
        new="number += isinstance(one, GreaterThan)",
        tests=("tests/pipeline/source/test_filter_pushdown.py", "tests/pipeline/source/test_data_source.py"),
    ),
    Mutation(
        number=16,
        area="shell",
        what="the shell prints the server key of a credential instead of ***",
        path="aclog/shell/tree.py",
        old="storedKey={stored}, serverKey={server}",
        new="storedKey={stored}, serverKey={record.server_key.hex()}",
        tests=("tests/shell/test_commands.py",),
    ),
    Mutation(
        number=17,
        area="sources, library",
        what="a state that is older than `max_age` is returned: the seconds are compared as milliseconds",
        path="aclog/sources/server_flags.py",
        old="if freshness.seconds > max_age:",
        new="if freshness.seconds > 1000 * max_age:",
        tests=("tests/nodes/observer/test_freshness.py",),
    ),
    Mutation(
        number=18,
        area="console",
        what="the cookie of a session is not HttpOnly",
        path="aclog/console/login/forms.py",
        old="Path=/; HttpOnly; SameSite=Lax",
        new="Path=/; SameSite=Lax",
        tests=("tests/console/login/test_passwords.py",),
    ),
    Mutation(
        number=19,
        area="console (decision point)",
        what="a question of a batch that names its own subject is decided for the subject of the batch",
        path="aclog/console/pdp/authzen.py",
        old="{**shared, **each}",
        new="{**each, **shared}",
        tests=("tests/console/pdp/test_app.py",),
    ),
    Mutation(
        number=20,
        area="cli",
        what="the exit code of a denied request is that of an allowed one: a script goes on",
        path="aclog/cli/explain.py",
        old="return ALLOWED if decision.result is AuthorizationResult.ALLOWED else DENIED",
        new="return ALLOWED",
        tests=("tests/cli/test_authorize.py",),
    ),
)


class RunError(Exception):
    """A run of pytest that judges nothing."""


@frozen(kw_only=True)
class Run:
    """What a run of pytest came to: how many tests ran, the one that failed, and the first line of its error."""

    tests: int
    failed: str | None = None
    error: str = ""


@frozen(kw_only=True)
class Verdict:
    """What became of a mutation: killed by a test of a tier, survived, or not judged."""

    mutation: Mutation
    tier: str = ""
    """The lowest one whose tests kill it."""
    killer: Run | None = None
    problem: str = ""
    """Why it is not judged."""
    untried: bool = False
    """Whether it has no test of the tiers that ran."""

    @property
    def text(self) -> str:
        if self.killer is not None:
            return f"`{self.killer.failed}` ({self.tier})"
        if self.problem:
            return f"not judged: {self.problem}"
        return "no test of these tiers" if self.untried else "**survived**"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note, in a copy, the tests that run and the one that fails."""
    notes = os.environ.get(_NOTES)
    if notes and (report.failed or (report.when == "call" and report.passed)):
        crash = getattr(report.longrepr, "reprcrash", None)
        error = (str(report.longrepr) if crash is None else crash.message).partition("\n")[0]
        line = {"nodeid": report.nodeid, "failed": report.failed, "error": error}
        with Path(notes).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(line)}\n")


@define(eq=False)
class Copies:
    """A plain copy of the checkout, and mutated ones of that, in one temporary directory."""

    scratch: Path
    plain: Path = field(default=Factory(lambda self: self.scratch / "plain", takes_self=True), init=False)
    _passed: dict[tuple[tuple[str, ...], str], Run] = field(factory=dict, init=False)

    def make(self) -> None:
        """Copy the tracked files, and link what is built."""
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
        for name in filter(None, listed.stdout.split("\0")):
            source, target = ROOT / name, self.plain / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_symlink() or source.exists():  # else it is deleted, and not committed yet
                shutil.copy2(source, target, follow_symlinks=False)
        (self.plain / "build").mkdir(exist_ok=True)
        for name in LINKED:
            if (ROOT / "build" / name).exists():
                (self.plain / "build" / name).symlink_to(ROOT / "build" / name)
        self._check_import(self.plain)

    @contextmanager
    def mutated(self, mutation: Mutation) -> Iterator[Path]:
        """Make a copy with a defect, and remove it."""
        copy = self.scratch / "mutated"
        stale = shutil.ignore_patterns(f"{Path(mutation.path).stem}.*.pyc")
        shutil.copytree(self.plain, copy, symlinks=True, ignore=stale)
        try:
            path = copy / mutation.path
            path.write_text(mutation.apply(path.read_text(encoding="utf-8")), encoding="utf-8")
            self._check_import(copy)
            yield copy
        finally:
            shutil.rmtree(copy)

    def judge(self, mutation: Mutation, highest: str) -> Verdict:
        """Run the tests of a mutation, of each tier up to `highest`, until one of them fails."""
        untried = True
        try:
            with self.mutated(mutation) as copy:
                for tier in TIERS[: TIERS.index(highest) + 1]:
                    if not self._check_plain(mutation.tests, tier):
                        continue
                    untried, run = False, self._run(copy, mutation.tests, tier)
                    if run.failed is not None:
                        return Verdict(mutation=mutation, tier=tier, killer=run)
        except RunError as error:
            return Verdict(mutation=mutation, problem=str(error))
        return Verdict(mutation=mutation, untried=untried)

    def _check_plain(self, tests: tuple[str, ...], tier: str) -> int:
        """Return how many of some tests pass without a defect. Raises RunError: one fails, or as `_run`."""
        if (tests, tier) not in self._passed:
            self._passed[tests, tier] = self._run(self.plain, tests, tier)
        run = self._passed[tests, tier]
        if run.failed is not None:
            raise RunError(f"{run.failed} fails without the defect, too")
        return run.tests

    def _run(self, copy: Path, tests: Sequence[str], tier: str) -> Run:
        """Run tests in a copy until one fails. Raises RunError: they cannot be collected, or do not end."""
        notes, output = self.scratch / "notes", self.scratch / "output"
        notes.write_bytes(b"")
        options = ["-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "tests.scenarios.mutations"]
        options += ["--tier", tier, "--timeout", str(TEST_SECONDS), "--basetemp", str(self.scratch / "t")]
        with output.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *options, *tests],
                cwd=copy,
                env=_environment(copy) | {_NOTES: str(notes)},
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for this process, which ends the run
            )
            code = _ended(process, str(notes))
        lines = [json.loads(line) for line in notes.read_text(encoding="utf-8").splitlines()]
        failed = next(({"failed": each["nodeid"], "error": each["error"]} for each in lines if each["failed"]), {})
        if code not in ((pytest.ExitCode.TESTS_FAILED,) if failed else _PASSED):
            why = f"pytest ended with {code}" if code is not None else f"pytest did not end within {RUN_SECONDS} s"
            print(*output.read_text(encoding="utf-8", errors="replace").splitlines()[-30:], sep="\n", file=sys.stderr)
            raise RunError(f"{why} ({copy.name}, tier {tier})")
        return Run(tests=len(lines), **failed)

    def _check_import(self, copy: Path) -> None:
        """Check that children import aclog from a copy, wherever they run: the checkout is installed as editable."""
        for cwd in (copy, self.scratch):
            asked = [sys.executable, "-c", "import aclog; print(aclog.__file__)"]
            answer = subprocess.run(asked, cwd=cwd, env=_environment(copy), check=True, capture_output=True, text=True)
            if Path(answer.stdout.strip()) != copy / "aclog" / "__init__.py":
                raise RuntimeError(f"{cwd}: imports {answer.stdout.strip()}: expected the copy in {copy}")


def _environment(copy: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": ""}


def _ended(process: "subprocess.Popen[bytes]", notes: str) -> int | None:
    """Wait for a run and all that it has started, and return its exit code; None: it had to be stopped."""
    try:
        return process.wait(RUN_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.returncode is None:  # pytest ends the servers that its tests have started
            process.send_signal(signal.SIGINT)
        # Servers that tests share end by themselves, soon after pytest; what a defect has made hang does not.
        while started := [
            p for p in psutil.process_iter(["environ"]) if (p.info["environ"] or {}).get(_NOTES) == notes
        ]:
            for each in psutil.wait_procs(started, _STOP_SECONDS)[1]:
                with suppress(psutil.NoSuchProcess):
                    each.kill()
        process.wait()


def table(verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts as a table of Markdown, and how many were killed."""
    lines = ["| number | area | defect | killed by (tier) |", "| --- | --- | --- | --- |"]
    for each in verdicts:
        cells = (str(each.mutation.number), each.mutation.area, each.mutation.what, each.text)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    killed = [each for each in verdicts if each.killer is not None]
    by_tier = ", ".join(f"{sum(each.tier == tier for each in killed)} in the tier `{tier}`" for tier in TIERS)
    return "\n".join([*lines, "", f"{len(killed)} of {len(verdicts)} are killed: {by_tier}.", ""])


def main() -> int:
    """Judge and report; return 1 if one cannot be judged, or survives all tests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tier", choices=TIERS, default="all")
    parser.add_argument("--only", type=int, nargs="+", metavar="N", choices=[each.number for each in MUTATIONS])
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="aclog-mutations-") as scratch:
        copies = Copies(Path(scratch).resolve())
        copies.make()
        for mutation in MUTATIONS:
            if not chosen.only or mutation.number in chosen.only:
                verdict = copies.judge(mutation, chosen.tier)
                error = f": {verdict.killer.error}" if verdict.killer is not None else ""
                print(f"{mutation.number}: {mutation.what}: {verdict.text}{error}", file=sys.stderr, flush=True)
                verdicts.append(verdict)
    print(text := table(verdicts))
    if chosen.out is not None:
        chosen.out.write_text(f"# Hand-made mutations, and the tests that kill them\n\n{text}", encoding="utf-8")
    return int(any(each.problem or (each.killer is None and chosen.tier == TIERS[-1]) for each in verdicts))


if __name__ == "__main__":
    sys.exit(main())
