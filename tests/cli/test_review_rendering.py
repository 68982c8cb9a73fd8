"""`aclog review --render`: rules that a command writes on both sides, and what no command, and no change, can do."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.support.cli.command import aclog
from tests.support.cli.repository import Repository

pytestmark = [pytest.mark.process, pytest.mark.tier("all")]

USERS = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: PREFIXapp}
spec:
  authorization: {type: simple, acls: [{resource: {type: topic, name: orders}, operations: [OPERATION]}]}
"""
RENDER = """\
import pathlib, sys
print("---")
if sys.argv[2:]:
    print("# Source:", sys.argv[2])
text = pathlib.Path("templates/users.txt").read_text()
print(text.replace("PREFIX", pathlib.Path(sys.argv[1]).read_text().strip()), end="")
"""
"""In the place of a program such as helm: templates, and values from a file."""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Return a repository with rules that take a command, in the working directory; temporary files go to `tmp`."""
    made = Repository.create(tmp_path / "repository")
    made.commit(
        {
            "charts/a/Chart.yaml": "name: users\n",
            "charts/a/templates/users.txt": USERS.replace("OPERATION", "Read"),
            "charts/a/prod.txt": "prod-\n",
            ".gitignore": "*.log\n",
        }
    )
    (tmp_path / "render.py").write_text(RENDER)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    for name in ("GITHUB_SERVER_URL", "CI_PROJECT_URL", "BITBUCKET_GIT_HTTP_ORIGIN", "GITHUB_BASE_REF"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(made.path / "charts/a")
    return made


def _program(repository: Repository, text: str | None = None) -> str:
    """Return the beginning of a command line of a program outside of the repository."""
    file = repository.path.parent / "render.py"
    if text is not None:
        file.write_text(text)
    return f"'{sys.executable}' '{file}'"


def _temporary(repository: Repository) -> list[Path]:
    return list((repository.path.parent / "tmp").iterdir())


@pytest.mark.tier("test")
def test_the_output_of_both_sides_is_compared(repository: Repository) -> None:
    Path("templates/users.txt").write_text(USERS.replace("OPERATION", "Write"))
    result = aclog("review", "--base", "main", "--render", f"{_program(repository)} prod.txt").ok()
    assert result.lines[0].endswith("no condition of --fail-on is met; access gained: 1 row, lost: 1 row")
    assert "GAINED  User:prod-app: WRITE on TOPIC orders, from any host" in result.out
    assert "render.py' prod.txt, run in a copy of each side" in result.out
    repository.git("add", "--all")
    repository.git("commit", "-q", "-m", "b")
    flags = ("--base", "main~1", "--head", "main", "--render", f"{_program(repository)} prod.txt")
    assert aclog("review", *flags).ok().lines[:2] == result.lines[:2]
    assert _temporary(repository) == []


def test_a_location_is_the_template_that_the_output_names(repository: Repository) -> None:
    Path("templates/users.txt").write_text(USERS.replace("OPERATION", "Write"))
    flags = ("review", "--base", "main", "--render", f"{_program(repository)} prod.txt users/templates/users.txt")
    lines = [json.loads(line) for line in aclog(*flags, "--format", "jsonl").ok().lines]
    lost, gained = sorted((each for each in lines if each["kind"] == "difference"), key=lambda each: each["change"])[
        ::-1
    ]
    assert (gained["new"]["file"], gained["new"]["line"]) == ("templates/users.txt", 1)
    assert (lost["old"]["file"], lost["old"]["line"]) == ("main:charts/a/templates/users.txt", 1)
    repository.git("remote", "add", "origin", "https://github.com/a/b")
    assert "charts/a/templates/users.txt:1" in aclog(*flags, "--format", "markdown").ok().out
    for unknown in ("other/templates/users.txt", "users/../../a/templates/users.txt", "users/templates/none.txt"):
        command = f"{_program(repository)} prod.txt {unknown}"
        out = aclog("review", "--base", "main", "--render", command).ok().out
        assert f"changed: {command}:7" in out.replace("\n      ", " "), unknown


def test_a_location_is_the_file_in_kustomizes_annotation(repository: Repository) -> None:
    annotated = USERS.replace("name: PREFIXapp", "name: app, annotations: NOTE").replace("OPERATION", "NAMED")
    text = annotated.replace(
        "metadata: {name: app, annotations: NOTE}\n",
        "metadata:\n  annotations:\n    config.kubernetes.io/origin: |\n      path: ../../base/user.yaml\n"
        "MORE  name: app\n",
    )
    program = (
        f"import pathlib\ntext = {text!r}\noperation = pathlib.Path('base/user.yaml').read_text().strip()\n"
        "more = pathlib.Path('more').read_text()\n"
        "print(text.replace('NAMED', operation).replace('MORE', more), end='')\n"
    )
    repository.commit(
        {
            "base/user.yaml": "Read\n",
            "more": "",
            "overlays/prod/kustomization.yaml": "resources: [../../base]\n",
            "overlays/dev/kustomization.yaml": "resources: [../../base]\n",
        }
    )
    (repository.path / "base/user.yaml").write_text("Write\n")
    os.chdir(repository.path)
    command = _program(repository, program)
    for arguments in ("", " overlays/prod"):
        out = aclog("review", "--base", "main", "--render", f"{command}{arguments}").ok().out
        assert "changed: base/user.yaml:1" in out
    (repository.path / "more").write_text("      repo: https://example.com/x\n")
    out = aclog("review", "--base", "main", "--render", command).ok().out
    assert "base/user.yaml:1" not in out.replace("main:base/user.yaml:1", "")


@pytest.mark.tier("test")
def test_a_command_changes_neither_the_work_tree_nor_the_repository(repository: Repository) -> None:
    Path("prod.txt").write_text("new-\n")
    Path("untracked.txt").write_text("1")
    Path("secret.log").write_text("ignored")
    Path("deleted.txt").write_text("x")
    repository.git("add", "charts/a/deleted.txt")
    Path("deleted.txt").unlink()
    program = """\
import os, pathlib, shutil, subprocess, sys
seen = sorted(each.as_posix() for each in pathlib.Path().rglob("*") if each.is_file())
with open(sys.argv[2], "a") as file:
    print(seen, subprocess.run(["git", "rev-parse", "--git-dir"], capture_output=True).returncode, file=file)
exec(open(sys.argv[1]).read())
for each in list(pathlib.Path().iterdir()):
    shutil.rmtree(each) if each.is_dir() else each.unlink()
pathlib.Path("new").write_text("new")
os.chmod(".", 0o500)
"""
    inner = repository.path.parent / "inner.py"
    inner.write_text(RENDER.replace("sys.argv[2:]", "[]").replace("sys.argv[1]", "'prod.txt'"))
    before = repository.git("status", "--porcelain", "--ignored"), repository.git("worktree", "list")
    log = repository.path.parent / "log"
    result = aclog("review", "--base", "main", "--render", f"{_program(repository, program)} '{inner}' '{log}'").ok()
    assert "GAINED  User:new-app: READ, DESCRIBE on TOPIC orders" in result.out
    assert (repository.git("status", "--porcelain", "--ignored"), repository.git("worktree", "list")) == before
    assert Path("untracked.txt").read_text() == "1"
    base, head = log.read_text().splitlines()
    assert base == "['Chart.yaml', 'prod.txt', 'templates/users.txt'] 128"
    assert head == "['Chart.yaml', 'prod.txt', 'templates/users.txt', 'untracked.txt'] 128"
    assert _temporary(repository) == []


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("import sys\nsys.exit('first\\nlast line\\n\\n')", "exit code 1: last line"),
        ("import sys\nsys.exit(3)", "exit code 3: nothing on stderr"),
        ("import os\nos.kill(os.getpid(), 9)", "ended by signal 9: nothing on stderr"),
        ("print('a: b: c')", "not of a known format: expected one of jsonl"),
        ("print('kind: KafkaUser\\nname: {{ .name }}')", "a template that may state rules"),
        ("while True: print('a' * 65536)", "more than 64 MiB of output"),
        ("import sys\nwhile True: sys.stderr.write('a' * 65536)", "not at its end within 3 s (--render-timeout)"),
    ],
)
def test_a_command_that_fails_is_refused(repository: Repository, program: str, expected: str) -> None:
    command = _program(repository, program)
    result = aclog("review", "--base", "main", "--render", command, "--render-timeout", 3)
    assert result.code == 2
    assert " ".join(command.split()) in result.complaint
    assert expected in result.complaint
    assert _temporary(repository) == []


_HANGS = """\
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
marker = pathlib.Path(sys.argv[1])
marker.with_suffix(".new").write_text(str(child.pid))
marker.with_suffix(".new").rename(marker)
END
"""


def _has_ended(pid: int) -> bool:
    """Return whether a process that was killed has ended: the system may take a moment."""
    try:
        return not psutil.wait_procs([psutil.Process(pid)], timeout=60)[1]
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("end", ["time.sleep(600)", "pass"])
def test_no_process_of_a_command_that_takes_too_long_is_left(repository: Repository, end: str) -> None:
    marker = repository.path.parent / "marker"
    command = f"{_program(repository, _HANGS.replace('END', end))} '{marker}'"
    result = aclog("review", "--base", "main", "--render", command, "--render-timeout", 5)
    assert "not at its end within 5 s (--render-timeout)" in result.complaint
    assert _has_ended(int(marker.read_text()))
    assert _temporary(repository) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_the_command_and_removes_the_copy(repository: Repository, number: signal.Signals) -> None:
    marker = repository.path.parent / "marker"
    command = f"{_program(repository, _HANGS.replace('END', 'time.sleep(600)'))} '{marker}'"
    environment = {**os.environ, "TMPDIR": str(repository.path.parent / "tmp")}
    arguments = [sys.executable, "-m", "aclog", "review", "--base", "main", "--render", command]
    inherited = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup's is to be ignored, and children inherit that
    with subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE) as process:
        signal.signal(signal.SIGHUP, inherited)
        while not marker.exists():
            assert process.poll() is None
            time.sleep(0.05)
        assert len(_temporary(repository)) == 1
        process.send_signal(number)
        assert process.wait() == 130
    assert _has_ended(int(marker.read_text()))
    assert _temporary(repository) == []


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("./render.sh prod", "a program of the change that is reviewed"),
        ("bin/render", "a program of the change that is reviewed"),
        ("{top}/charts/a/evil", "a program of the change that is reviewed"),
        ("{top}/../link", "a program of the change that is reviewed"),
        ("cat {top}/charts/a/prod.txt", "a path in the work tree is the same on both sides"),
        ("sh -c 'cat {top}'", "a path in the work tree is the same on both sides"),
        ("aclog-no-such-program", "no such program on the PATH"),
        ("evil", "no such program on the PATH"),
        ("kustomize 'build", "No closing quotation"),
        ("", "expected a command line"),
    ],
)
def test_a_program_of_the_change_is_refused(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, command: str, expected: str
) -> None:
    repository.write({"charts/a/evil": "#!/bin/sh\n"})
    Path("evil").chmod(0o755)
    (repository.path.parent / "link").symlink_to(Path("evil").absolute())
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}:{Path.cwd()}:")
    result = aclog("review", "--base", "main", "--render", command.format(top=repository.path))
    assert result.code == 2
    assert expected in result.complaint


def test_a_command_starts_no_program_of_the_change(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = repository.path.parent / "ran"
    repository.commit({"charts/a/evil": f"#!/bin/sh\ntouch '{marker}'\n"})
    Path("evil").chmod(0o755)
    repository.git("add", "--all")
    repository.git("commit", "-q", "-m", "b")
    monkeypatch.setenv("PATH", f".:{Path.cwd()}:{os.environ['PATH']}:")
    result = aclog("review", "--base", "main", "--render", "env evil")
    assert (result.code, "exit code 127" in result.complaint) == (2, True)
    assert not marker.exists()


@pytest.mark.parametrize("program", ["pass", "import sys; print('kind: A'); print('Error: no', file=sys.stderr)"])
def test_a_head_that_a_command_may_have_failed_on_is_refused(repository: Repository, program: str) -> None:
    """It ends with exit code 0 and without rules: as if the change removed them all."""
    failing = f"import pathlib\nif pathlib.Path('fails').exists():\n    {program}\nelse:\n    exec({RENDER!r})\n"
    Path("fails").touch()
    result = aclog("review", "--base", "main", "--render", f"{_program(repository, failing)} prod.txt")
    assert result.code == 2
    assert "wrote no rules, while main" in result.complaint
    assert result.complaint.endswith("has 1 rule")


def test_what_a_command_writes_to_stderr_is_a_note(repository: Repository) -> None:
    warns = RENDER + "print('deprecated: use v2', file=sys.stderr)\n"
    result = aclog("review", "--base", "main", "--render", f"{_program(repository, warns)} prod.txt").ok()
    assert result.err.count("deprecated: use v2") == 2


# What a pull request can do with aclog.toml.


_SETTINGS = "[source]\nacls = 'charts/a'\nrender = {command!r}\n"


def _configured(repository: Repository, name: str = "prod.txt") -> str:
    settings = _SETTINGS.format(
        command=f"{_program(repository, RENDER.replace('templates/', 'charts/a/templates/'))} charts/a/{name}"
    )
    repository.commit({"aclog.toml": settings})
    return settings


def test_no_command_runs_without_a_flag(repository: Repository) -> None:
    marker = repository.path.parent / "ran"
    repository.commit({"aclog.toml": _SETTINGS.format(command=f"touch {marker}")})
    repository.write({"charts/a/x.jsonl": ""})
    os.chdir(repository.path)
    for command in (("review", "--base", "main"), ("lint",), ("test",)):
        aclog(*command)
    assert not marker.exists()
    aclog("review", "--base", "main", "--render-configured")
    assert marker.exists()


@pytest.mark.tier("test")
def test_the_command_is_that_of_the_base(repository: Repository) -> None:
    settings = _configured(repository)
    marker = repository.path.parent / "ran"
    Path("prod.txt").write_text("new-\n")
    evil = _SETTINGS.format(command=f"touch {marker}")
    for name, text in {"changed": evil, "removed": "[source]\nacls = 'charts/a'\n"}.items():
        repository.write({"aclog.toml": text})
        result = aclog("review", "--base", "main", "--render-configured").ok()
        assert "the change modifies its key render" in result.err, name
        assert "GAINED  User:new-app" in result.out, name
        assert "the change modifies the checks themselves: aclog.toml" in result.out, name
        assert not marker.exists(), name
    (repository.path / "charts/a/aclog.toml").write_text(evil.replace("charts/a", "."))
    assert "GAINED  User:new-app" in aclog("review", "--base", "main", "--render-configured").ok().out
    assert not marker.exists()
    (repository.path / "charts/a/aclog.toml").unlink()
    repository.write({"aclog.toml": settings})
    unchanged = aclog("review", "--base", "main", "--render-configured").ok()
    assert "key render" not in unchanged.err


def test_a_command_that_the_change_adds_does_not_run(repository: Repository) -> None:
    marker = repository.path.parent / "ran"
    repository.write({"aclog.toml": _SETTINGS.format(command=f"touch {marker}"), "charts/a/acls.jsonl": "{}"})
    result = aclog("review", "--base", "main", "--render-configured")
    assert result.code == 2  # {} is no rule
    repository.write({"charts/a/acls.jsonl": ""})
    result = aclog("review", "--base", "main", "--render-configured")
    assert "main:aclog.toml: no key render, so files are read as they are" in result.err + result.out
    assert not marker.exists()


def test_a_file_that_a_flag_names_is_that_of_the_base_if_the_repository_has_it(repository: Repository) -> None:
    marker = repository.path.parent / "ran"
    settings = _SETTINGS.format(command=f"{_program(repository)} prod.txt").replace("charts/a", ".")
    repository.commit({"charts/a/other.toml": settings})
    Path("prod.txt").write_text("new-\n")
    Path("other.toml").write_text(settings.replace(f"'{sys.executable}'", f"touch {marker}"))
    flags = ("review", "--base", "main", "--render-configured", "--config")
    assert "GAINED  User:new-app" in aclog(*flags, "other.toml").ok().out
    outside = repository.path.parent / "outside.toml"
    outside.write_text(settings.replace("acls = '.'", f"acls = {str(Path.cwd())!r}"))
    assert "GAINED  User:new-app" in aclog(*flags, outside).ok().out
    Path("linked").symlink_to("../../..")  # a directory that the change may have chosen
    (repository.path.parent / "other.toml").write_text(Path("other.toml").read_text())
    for name in ("linked/other.toml", Path("linked/other.toml").absolute()):
        assert "not of a known format" not in aclog(*flags, name).err  # of an output: nothing ran
    assert not marker.exists()


def test_each_cluster_has_its_own_command(repository: Repository) -> None:
    program = _program(repository, RENDER.replace("templates/", "charts/a/templates/"))
    repository.commit({"charts/a/dev.txt": "dev-\n", "plain/a.jsonl": ""})
    clusters = "".join(
        f"[clusters.{name}]\nacls = 'charts/a'\nrender = {f'{program} charts/a/{name}.txt'!r}\n"
        for name in ("dev", "prod")
    )
    repository.commit({"aclog.toml": f"{clusters}[clusters.plain]\nacls = 'plain'\n"})
    Path("templates/users.txt").write_text(USERS.replace("OPERATION", "Write"))
    result = aclog("review", "--base", "main", "--render-configured").ok()
    dev, prod, plain = (part.partition("\n") for part in result.out.split("cluster ")[1:])
    assert (dev[0], "User:dev-app: WRITE" in dev[2], "User:prod" in dev[2]) == ("dev", True, False)
    assert (prod[0], "User:prod-app: WRITE" in prod[2], "User:dev" in prod[2]) == ("prod", True, False)
    assert (plain[0], "no effective change" in plain[2]) == ("plain", True)
    one = aclog("review", "--base", "main", "--render", program)
    assert one.complaint.startswith("--render: one command for several clusters")
    repository.write({"aclog.toml": f"[source]\nrender = 'x'\n{clusters}"})
    assert "the clusters would have the same rules" in aclog("review", "--base", "main").complaint


def test_flags_that_do_not_go_together(repository: Repository) -> None:
    both = aclog("review", "--base", "main", "--render", "x", "--render-configured")
    assert both.complaint == "--render and --render-configured: expected one of them"
    path = aclog("review", ".", "--base", "main", "--render-configured")
    assert path.complaint.startswith("--render-configured: the command is for source.acls")


# What the files of a side can do.


def test_a_side_without_the_path_has_no_rules_and_no_command_runs_there(repository: Repository) -> None:
    log = repository.path.parent / "log"
    repository.write({"new/templates/users.txt": USERS, "new/prod.txt": "a-"})
    os.chdir(repository.path)
    program = f"import os\nopen({str(log)!r}, 'a').write('1')\nos.chdir('new')\n{RENDER}"
    repository.write({"new/templates/users.txt": USERS.replace("OPERATION", "Read")})
    command = f"{_program(repository, program)} prod.txt"
    result = aclog("review", "new", "--base", "main", "--render", command).ok()
    assert "GAINED  User:a-app: READ, DESCRIBE on TOPIC orders" in result.out
    assert log.read_text() == "1"


def test_what_the_command_did_not_have_is_unread(repository: Repository) -> None:
    (repository.path.parent / "secret.yaml").write_text("secret")
    Path("out.yaml").symlink_to("../../../secret.yaml")
    Path("in.yaml").symlink_to("Chart.yaml")
    Path("absolute").symlink_to("/etc/passwd")
    Path("values.yaml").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    Path("picture.png").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    other = Repository.create(repository.path.parent / "other")
    other.commit({"a": "1"})
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../other", "vendor")
    program = "import os\nassert not os.path.lexists('out.yaml') and not os.path.lexists('absolute')\n" + RENDER
    command = f"{_program(repository, program)} prod.txt"
    working = aclog("review", "--base", "main", "--render", command, "--fail-on", "unread", "--format", "jsonl")
    repository.commit({})
    committed = aclog(
        *("review", "--base", "main~1", "--head", "main", "--render", command, "--fail-on", "unread"),
        *("--format", "jsonl"),
    )
    for result in (working, committed):
        assert result.code == 1, result.err
        unread = [line for line in map(json.loads, result.lines) if line["kind"] == "unread"]
        places = sorted((each["label"], Path(each["file"].rpartition(":")[2]).name, each["changed"]) for each in unread)
        assert places == [
            ("encoded", "values.yaml", True),
            *(("link", name, True) for name in ("absolute", "out.yaml", "vendor")),
        ]
    accepted = ("--accept-unread", "link,encoded", "--fail-on", "unread")
    assert aclog("review", "--base", "main~1", "--render", command, *accepted).code == 0


def test_a_tree_of_endlessly_many_directories_is_refused(repository: Repository) -> None:
    tree = repository.git("hash-object", "-t", "tree", "-w", os.devnull)
    for _ in range(40):
        listed = f"040000 tree {tree}\ta\n040000 tree {tree}\tb\n"
        done = subprocess.run(["git", "mktree"], input=listed, capture_output=True, text=True, check=True)
        tree = done.stdout.strip()
    commit = repository.git("commit-tree", tree, "-p", "main", "-m", "bomb")
    result = aclog(
        "review", "../../a", "--base", "main", "--head", commit, "--render", f"{_program(repository)} prod.txt"
    )
    assert "more than 200,000 files and directories" in result.complaint
    assert _temporary(repository) == []


def test_other_output_may_be_of_any_format_and_what_may_hold_rules_is_unread(repository: Repository) -> None:
    rule = {
        "resourceType": "TOPIC",
        "resourceName": "t",
        "patternType": "LITERAL",
        "principal": "User:a",
        "host": "*",
        "operation": "READ",
        "permissionType": "ALLOW",
    }
    repository.commit({"charts/a/out": "", "charts/a/other": "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n"})
    command = _program(repository, "print(open('out').read() or open('other').read())")
    Path("out").write_text(json.dumps(rule))
    result = aclog("review", "--base", "main", "--render", command).ok()
    assert "GAINED  User:a: READ, DESCRIBE on TOPIC t" in result.out
    data = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  a: |\n    {json.dumps(rule)}\n"
    Path("out").write_text(f"{USERS}---\n{data}".replace("OPERATION", "Read").replace("PREFIX", ""))
    result = aclog("review", "--base", "main", "--render", command, "--fail-on", "unread")
    assert result.code == 1
    assert "1 changed object not read" in result.lines[0]
