"""The work on several parts: several processes have the results, notices and errors of one."""

import _thread
import os
import subprocess
import sys
import threading
from pathlib import Path
from random import Random

import pytest
from attrs import evolve, frozen

from aclog.metalog.errors import ConfigError, MetadataError
from aclog.sources import choice
from aclog.sources import forks as module
from aclog.sources.choice import AclsSource
from aclog.sources.forks import each_part
from aclog.sources.formats import reading
from aclog.terminal.output import note, notices_to, warn
from tests.support.cli.command import aclog
from tests.support.runs.profiles import examples
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
            results.extend(each_part(NAMES, work, processes=processes))
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
        [sys.executable, "-c", f"from tests.sources import test_forks as tests; tests.{call}"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # as the command sets it
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.process
def test_the_others_are_other_processes_and_a_killed_one_is_made_up_for():
    alone("other_processes()")


def other_processes():
    own = os.getpid()
    processes = dict(each_part(NAMES, lambda _: os.getpid(), processes=2))
    assert processes.pop("a") == own
    assert own not in processes.values()
    assert len(set(processes.values())) <= 2

    def killed(name):
        if os.getpid() != own and name == "c":
            os.kill(os.getpid(), 9)
        return name

    assert list(each_part(NAMES, killed, processes=2)) == [(name, name) for name in NAMES]


@pytest.mark.process
@pytest.mark.parametrize(("allowed", "count"), [(1, 0), (2, 2), (64, 8)])
def test_processes_are_as_many_as_the_cores_of_this_one(allowed, count):
    alone(f"as_many({allowed}, {count})")


def as_many(allowed, count):
    counts = []
    os.cpu_count = lambda: 64
    os.sched_getaffinity = lambda _: range(allowed)
    module.WORTH_S = -1.0
    module._in_forks = lambda names, work, number, _: counts.append(number) or ((name, work(name)) for name in names)
    names = [str(number) for number in range(20)]
    assert dict(each_part(names, str)) == {name: name for name in names}
    assert counts == [count] * bool(count)


def test_short_work_and_threads_stay_in_this_process():
    own = os.getpid()
    assert {pid for _, pid in each_part(NAMES, lambda _: os.getpid())} == {own}
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        assert {pid for _, pid in each_part(NAMES, lambda _: os.getpid(), processes=2)} == {own}
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
    commit_all()
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


@pytest.mark.process
def test_a_thread_that_python_does_not_know_keeps_work_in_this_process():
    alone("threads_of_libraries()")


def threads_of_libraries():
    assert module.is_alone()
    lock = _thread.allocate_lock()
    lock.acquire()
    _thread.start_new_thread(lock.acquire, ())
    assert threading.active_count() == 1
    assert not module.is_alone()
    lock.release()


@pytest.mark.process
def test_a_system_without_more_processes_has_the_same_results():
    alone("no_more_processes()")


def no_more_processes():
    def refused(*_):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    os.fork = refused
    assert list(each_part(NAMES, str.upper, processes=3)) == [(name, name.upper()) for name in NAMES]


# Files of a tree, which several processes share.


TOPIC = "apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaTopic\nmetadata: {name: NAME}\nspec: {partitions: 3}\n"
KUSTOMIZATION = "resources: [user.yaml, ../base]\nnamePrefix: NAME-\n"
TERRAFORM = """resource "kafka_acl" "NAME" {
  resource_name       = "NAME"
  resource_type       = "Topic"
  acl_principal       = "User:NAME"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}
"""
RULE = (
    '{"resourceType": "TOPIC", "resourceName": "NAME", "patternType": "LITERAL", "principal": "User:NAME", '
    '"host": "*", "operation": "READ", "permissionType": "ALLOW"}\n'
)
FILES = (
    *(("NAME.yaml", USER), ("user.yaml", USER), ("NAME.yaml", f"{USER}---\na: [\n"), ("t.yaml", TOPIC), ("e.yaml", "")),
    ("users.yml", f"{USER}---\n{TOPIC}---\n{USER.replace('app', 'other')}"),
    ("broken.yaml", "kind: KafkaUser\nspec: [\n"),
    ("twin.yaml", USER.replace("Read", "Write")),
    ("old.yaml", USER.replace("v1beta2", "v1alpha1")),
    ("aliases.yaml", f"a: &x {{b: 1}}\nc: *x\n---\n{USER}"),
    ("values.yaml", "acls:\n- {user: NAME, operation: read}\n"),
    *(("templates/u.yaml", USER.replace("app", "{{ .Values.NAME }}")), ("templates/v.yaml", USER)),
    *(("Chart.yaml", "apiVersion: v2\nname: NAME\nversion: 1.0.0\n"), ("kustomization.yaml", KUSTOMIZATION)),
    *(("main.tf", TERRAFORM), ("NAME.tf", TERRAFORM), ("x.tf", "resource {")),
    ("prod.tfvars", 'principal = "User:NAME"\n'),
    *(("rules.jsonl", RULE), ("e.jsonl", "")),
    ("acls.sh", "kafka-acls --add --allow-principal User:NAME --topic t\n"),
    ("acls.csv", "KafkaPrincipal,ResourceType,PatternType,ResourceName,Operation,PermissionType,Host\n"),
    ("config.yaml", "apiVersion: v1\nkind: ConfigMap\ndata:\n  a: |\n    kafka-acls --add --topic NAME\n"),
    *(("readme.md", "# NAME\n"), ("b.bin", "\0"), ("n.txt", "NAME")),
)
"""Names and texts of files: rules, and what is judged in every other way."""


def random_files(random):
    """Return the files of a mixed repository, some of them damaged."""
    files = {}
    for _ in range(random.randint(4, 30)):
        name, text = random.choice(FILES)
        path = "/".join([*random.choices(("a", "b", "prod", "dev", "base"), k=random.randint(0, 2)), name])
        content = text.replace("NAME", random.choice(NAMES)).encode()
        if random.random() < 0.1:
            at = random.randrange(len(content) + 1)
            content = content[:at] + random.choice((b"\xff", b"[", b"\n", b"{{ x }}", b"'")) + content[at:]
        path = path.replace("NAME", random.choice(NAMES))
        files[f"{path}.gz" if random.random() < 0.05 else path] = content
    return files


def state(source):
    """What a source has after reading, or its error, and the notices."""
    notices = []
    with notices_to(notices.append):
        try:
            acls = list(source.image().acls)
        except (MetadataError, OSError) as error:
            return str(error), notices
    layout = source.layout
    located = [(rule, source.origins.of(rule.acl)) for rule in acls]
    of_layout = layout and (layout.files, layout.twins, layout.overlays)
    return located, source.unread, source.dormant, source.topics, source.nothing_read, of_layout, notices


def sources(at_commit):
    source = AclsSource("HEAD:" if at_commit else ".", notify=note, is_ref=at_commit)
    source.options = evolve(source.options, notes_clusters=True)
    return source


@pytest.mark.process
def test_files_read_by_several_processes_are_those_of_one(tmp_path):
    alone(f"same_files({str(tmp_path)!r}, {max(20, examples(60))})")


def same_files(directory, count):
    os.sched_getaffinity = lambda _: range(3)
    pools = []
    module._in_forks = lambda *words: pools.append(1) or forks(*words)
    reading._PART = 2
    errors = 0
    for seed in range(count):
        os.chdir(directory)
        Path(str(seed)).mkdir()
        os.chdir(str(seed))
        for path, content in random_files(Random(seed)).items():
            if not any(each.is_file() for each in Path(path).parents):
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).write_bytes(content)
        if seed % 3 == 0:
            Path("link.yaml").symlink_to("nowhere")
        if seed % 4 == 0:
            commit_all()
        for at_commit in (False, True)[: 1 + (seed % 4 == 0)]:
            module.WORTH_S = -1.0
            several = state(sources(at_commit))
            module.WORTH_S = 1e9
            assert several == state(sources(at_commit)), (seed, at_commit)
            errors += isinstance(several[0], str)
    assert len(pools) > count / 2
    assert errors < count * 0.8


@pytest.mark.process
@pytest.mark.parametrize("fault", ["none", "killed", "broken"])
def test_two_sides_are_read_at_once(tmp_path, fault):
    alone(f"two_sides({str(tmp_path)!r}, {fault!r})")


def two_sides(directory, fault):
    users = {f"{number}.yaml": USER.replace("NAME", f"n{number}").replace("app", f"a{number}") for number in range(9)}
    write_files(Path(directory), users)
    os.chdir(directory)
    commit_all()
    write_files(Path(directory), {"3.yaml": users["3.yaml"].replace("Read, All", "Write")})
    if fault == "broken":
        write_files(Path(directory), {"5.yaml": USER.replace("type: simple", "type: odd")})
    own, find, pids = os.getpid(), choice.find_rules, []
    os.sched_getaffinity = lambda _: range(2)

    def killed(*words):
        if os.getpid() != own:
            os.kill(os.getpid(), 9)
        return find(*words)

    words = [("review", ".", "--base", "HEAD", "--format", "json"), ("diff", "--ref", "HEAD:", "--to-acls", ".")]
    expected = [aclog(*each) for each in words]
    choice._MANY_FILES, module.WORTH_S = 2, 1e9
    begun = module._begun
    module._begun = lambda *words: pids.append(1) or begun(*words)
    if fault == "killed":
        choice.find_rules = killed
    assert [aclog(*each) for each in words] == expected
    assert [each.code for each in expected] == ([2, 2] if fault == "broken" else [0, 1]), expected
    assert len(pids) == 2


def commit_all():
    for words in (("init", "-q"), ("add", "."), ("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "x")):
        assert os.spawnlp(os.P_WAIT, "git", "git", *words) == 0


@pytest.mark.process
def test_files_are_read_though_a_process_is_killed(tmp_path):
    alone(f"killed_reader({str(tmp_path)!r})")


def killed_reader(directory):
    users = {f"{number}.yaml": USER.replace("NAME", f"n{number}").replace("app", f"a{number}") for number in range(40)}
    write_files(Path(directory), users)
    os.chdir(directory)
    expected = state(sources(at_commit=False))
    assert len(expected[0]) == 80
    own, claimant = os.getpid(), reading._claimant

    def killed(file, *words, **others):
        if os.getpid() != own and file.path == "17.yaml":
            os.kill(os.getpid(), 9)
        return claimant(file, *words, **others)

    reading._claimant, reading._PART, module.WORTH_S = killed, 3, -1.0
    os.sched_getaffinity = lambda _: range(3)
    assert state(sources(at_commit=False)) == expected
