"""The command as a process: pipes, signals, a terminal, completion, and the imports of --help."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from unittest import mock

import pexpect
import pytest

from aclog.__main__ import run

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests/data/kafka-4.3.1-small/__cluster_metadata-0"
ACLOG = [sys.executable, "-m", "aclog"]


@pytest.mark.process
def test_the_module_runs_as_the_command():
    done = subprocess.run([*ACLOG, "--version"], capture_output=True, text=True, check=True, cwd=ROOT)
    first, second = done.stdout.splitlines()
    assert first.startswith("aclog ")
    assert second.startswith(("native core ", "no native core: "))
    assert done.stderr == ""


@pytest.mark.process
def test_the_native_core_can_be_turned_off():
    environment = os.environ | {"ACLOG_NATIVE": "0"}
    done = subprocess.run([*ACLOG, "--version"], capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    assert done.stdout.splitlines()[1] == "no native core: ACLOG_NATIVE is 0"


@pytest.mark.process
def test_help_loads_nothing_heavy():
    code = (
        "import sys; from aclog.__main__ import run; run(['--help']); early = 'attrs' in sys.modules;"
        "run(['authorize', '--help']);"
        "heavy = ('numpy', 'pyarrow', 'fastavro', 'prompt_toolkit', 'markdown_it', 'pydantic');"
        "print([name for name in heavy if name in sys.modules] + ['attrs'] * early);"
        "from rich.markdown import Markdown; print(Markdown('**whole** again').markup)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-2:] == ["[]", "**whole** again"]


@pytest.mark.process
def test_a_closed_pipe_is_not_an_error():
    with subprocess.Popen(
        [*ACLOG, "log", "dump", "--json", *[str(LOG)] * 50], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout.readline().startswith(b'{"file"')
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def interrupt(process):
    """Send SIGINT until the process ends: one that arrives just before a blocking read is handled after it."""
    for _ in range(20):
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
            return
    process.kill()


@pytest.mark.process
def test_requests_are_decided_as_they_arrive_and_an_interrupt_is_one_line():
    with subprocess.Popen(
        [*ACLOG, "authorize", "--log", str(LOG), "--requests", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    ) as process:
        process.stdin.write(
            b'{"principal":"User:bob","host":"::1","operation":"READ","resourceType":"TOPIC","resourceName":"payx"}\n'
        )
        process.stdin.flush()
        assert process.stdout.readline().startswith(b'{"decision":"ALLOWED"')
        interrupt(process)
        assert process.stderr.read().decode().splitlines()[-1] == "aclog: interrupted"
        assert process.wait() == 130


@pytest.mark.process
def test_names_are_printed_as_utf8_whatever_the_encoding_of_stdout():
    done = subprocess.run(
        [*ACLOG, "acls", "list", "--log", str(LOG), "--topic", "café-αβγ"],
        capture_output=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert "User:Jürgen".encode() in done.stdout


@pytest.mark.parametrize("locale", ["C", "C.utf8"])
@pytest.mark.process
def test_names_are_read_as_utf8_whatever_the_locale(locale):
    done = subprocess.run(
        [*ACLOG, "acls", "list", "--log", str(LOG), "--topic", "café-αβγ", "--principal", "User:Jürgen"],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    )
    assert done.returncode == 0
    assert done.stderr.startswith("aclog: warning: --topic 'café-αβγ': no topic can have such a name".encode())
    assert "name=café-αβγ".encode() in done.stdout


@pytest.mark.process
def test_a_name_that_is_not_utf8_is_refused():
    asked = [*ACLOG, "authorize", "--log", str(LOG), "--principal", "User:a", "--operation", "READ", "--topic", b"\xff"]
    done = subprocess.run(asked, capture_output=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", b"aclog: '\\udcff' is not UTF-8\n")


@pytest.mark.process
def test_a_full_disk_is_reported():
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*ACLOG, "acls", "list", "--log", str(LOG)], stdout=full, stderr=subprocess.PIPE, check=False, cwd=ROOT
        )
    assert (done.returncode, done.stderr) == (2, b"aclog: standard output: No space left on device\n")


def test_on_a_terminal_acls_are_a_table_and_avro_is_refused():
    assert "PERMISSION" in on_terminal("acls", "list", "--log", str(LOG), "--topic", "orders")
    assert "binary output to a terminal" in on_terminal("export", "--log", str(LOG), "--format", "avro")


def on_terminal(*arguments):
    """Return the output of a command on a terminal, stderr included."""
    child = pexpect.spawn(sys.executable, ["-m", "aclog", *arguments], cwd=str(ROOT), timeout=300, encoding="utf-8")
    child.expect(pexpect.EOF)
    return child.before


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("aclog ac", "acls"),
        ("aclog acls list --resource-p", "--resource-pattern-type"),
        ("aclog authorize --operation ALTER_", "ALTER_CONFIGS"),
        ("aclog export --format a", "avro"),
        (f"aclog shell --log {LOG} c", "cat"),
        (f"aclog shell --log {LOG} ls /ac", "/acl/"),
        (f"aclog shell --log {LOG} ls /acl/re", "/acl/resource/"),
        (f"aclog shell --log {LOG} cat /image /acl/resource/TOPIC/LITERAL/pay", "/acl/resource/TOPIC/LITERAL/payin/"),
        (f"aclog shell --log {LOG} ls /acl/resource/TRANSACTIONAL_ID/LITERAL/", "%20lead-trail%20/"),
        (f"aclog shell --log {LOG} why User:bob ALTER_", "ALTER_CONFIGS"),
        (f"aclog shell --snapshot {LOG / '00000000000000000211-0000000002.checkpoint'} ls /loc", "/local/"),
        (f"aclog shell --log {LOG} --as-of 0 ls /acl/i", "/acl/id/"),
    ],
)
def test_the_shell_completes_commands_options_and_values(words, offered, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    found = completed(capsys, words)
    assert any(line == offered or line.endswith(f"/{offered}") for line in found)


@pytest.mark.process
def test_a_completion_is_all_that_the_process_prints():
    assert as_process({"_ACLOG_COMPLETE": "bash"}, "aclog ac", "ac").split() == ["words", "acls", "accesses"]


@pytest.mark.parametrize(
    "words", ["--log nowhere ls", "ls", "--acls - ls", f"--log {LOG} cd", f"--log {LOG} --as-of x ls"]
)
def test_without_completions_nothing_is_printed(words, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert completed(capsys, f"aclog shell {words} /") == []


def as_process(variables, *arguments):
    """What the command prints, as a process of its own."""
    done = subprocess.run(
        [*ACLOG, *arguments],
        input="",
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **variables},
    )
    assert done.stderr == ""
    return done.stdout


def completed(capsys, words):
    """Return what completes the last of the words in zsh; without a process, each of which imports it all."""
    with mock.patch.dict(os.environ, {"_ACLOG_COMPLETE": "zsh"}):
        assert run(words.split()[1:]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return [line.split("\t")[0] for line in out.splitlines()[1:]]
