"""The work on several clusters: several processes have the results, notices and errors of one."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from attrs import frozen

from aclog.cli import each_cluster as module
from aclog.cli.each_cluster import each_cluster
from aclog.metalog.errors import ConfigError
from aclog.terminal.output import note, notices_to, warn
from tests.support.cli.command import aclog
from tests.support.sources.files_of_rules import write_files

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forks, on Linux only")
NAMES = ["a", "b", "c", "d", "e"]
USER = """apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata: {name: app, labels: {strimzi.io/cluster: NAME}}
spec: {authorization: {type: simple, acls: [{resource: {type: topic, name: NAME-orders}, operations: [Read, All]}]}}
"""


def outcome(work, processes):
    """What the work gives: its results and notices in their order, and its error."""
    seen, results = [], []
    with notices_to(seen.append):
        try:
            results.extend(each_cluster(NAMES, work, processes=processes))
        except ConfigError as error:
            results.append(str(error))
    return results, seen


def noted(name):
    note(f"note of {name}")
    warn(f"warning of {name}")
    return name.upper()


def failing(name):
    note(f"note of {name}")
    if name in ("c", "d"):
        raise ConfigError(f"no {name}")
    return name


@frozen
class Bound:
    """A value that another process cannot pass on."""

    name: str

    def __reduce__(self):
        raise TypeError(self.name)


def not_passed_on(name):
    note(f"note of {name}")
    return Bound(name)


@pytest.mark.parametrize("work", [noted, failing, not_passed_on])
def test_processes_have_the_results_notices_and_errors_of_one(work):
    assert outcome(work, 3) == outcome(work, 1)


def alone(call):
    """Run a call of this module in a process without other threads, which forks need and tests before may leave."""
    done = subprocess.run(
        [sys.executable, "-c", f"from tests.cli import test_each_cluster as tests; tests.{call}"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.process
def test_the_others_are_other_processes_and_a_killed_one_is_made_up_for():
    alone("other_processes()")


def other_processes():
    own = os.getpid()
    processes = dict(each_cluster(NAMES, lambda _: os.getpid(), processes=2))
    assert processes.pop("a") == own
    assert own not in processes.values()
    assert len(set(processes.values())) <= 2

    def killed(name):
        if os.getpid() != own and name == "c":
            os.kill(os.getpid(), 9)
        return name

    assert list(each_cluster(NAMES, killed, processes=2)) == [(name, name) for name in NAMES]


@pytest.mark.process
@pytest.mark.parametrize(("allowed", "count"), [(1, 0), (2, 2), (64, 8)])
def test_processes_are_as_many_as_the_cores_of_this_one(allowed, count):
    alone(f"as_many({allowed}, {count})")


def as_many(allowed, count):
    counts = []
    os.cpu_count = lambda: 64
    os.sched_getaffinity = lambda _: range(allowed)
    module.WORTH_S = -1.0
    module._in_forks = lambda names, work, number: counts.append(number) or ((name, work(name)) for name in names)
    names = [str(number) for number in range(20)]
    assert dict(each_cluster(names, str)) == {name: name for name in names}
    assert counts == [count] * bool(count)


def test_short_work_and_threads_stay_in_this_process():
    own = os.getpid()
    assert {pid for _, pid in each_cluster(NAMES, lambda _: os.getpid())} == {own}
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        assert {pid for _, pid in each_cluster(NAMES, lambda _: os.getpid(), processes=2)} == {own}
    finally:
        end.set()
        thread.join()


@pytest.mark.process
@pytest.mark.parametrize("broken", [False, True])
def test_lint_and_review_print_the_same_bytes(tmp_path, broken):
    alone(f"same_bytes({str(tmp_path)!r}, {broken})")


def same_bytes(directory, broken):
    tables = "".join(f'[clusters.{name}]\nacls = "{name}"\n' for name in NAMES)
    users = {f"{name}/user.yaml": USER.replace("NAME", name) for name in NAMES}
    write_files(Path(directory), {"aclog.toml": tables, **users})
    os.chdir(directory)
    for words in (("init", "-q"), ("add", "."), ("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "x")):
        assert os.spawnlp(os.P_WAIT, "git", "git", *words) == 0
    users = {path: text.replace("Read", "Write") for path, text in users.items()}
    write_files(Path(directory), users | ({"d/user.yaml": "kind: KafkaUser\nspec: [\n"} if broken else {}))
    os.sched_getaffinity = lambda _: range(3)
    pools = []
    module._in_forks = lambda *words: pools.append(1) or forks(*words)
    formats = [("review", "--format", each) for each in ("json", "text", "sarif", "markdown")]
    for words in (("lint", "--format", "jsonl"), ("lint",), *formats):
        module.WORTH_S = -1.0
        several = aclog(*words)
        module.WORTH_S = 1e9
        assert several == aclog(*words), words
        assert several.out or broken
    assert len(pools) == 6


forks = module._in_forks
