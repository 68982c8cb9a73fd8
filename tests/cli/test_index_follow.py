"""`aclog usage-index --follow`: each access counts once, however its log is rotated and the process is killed."""

import gzip
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from aclog.authorizer.settings import Settings
from aclog.cli.flags.accesses import AccessesFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.index_follow import file_feed
from aclog.cli.index_update import IndexRuns, NothingTakenError
from aclog.metalog.errors import ConfigError
from aclog.usage.index.usage_index import UsageIndex
from aclog.usage.window import EARLIEST, LATEST
from tests.cli.test_usage_index import ACCESS, RULES, written
from tests.support.cli.command import aclog
from tests.support.processes.waiting import SECONDS, wait_until

KILLS = 5
LINE = (
    "[2026-11-21 10:{:02}:{:02},{:03}] DEBUG Principal = User:{} is Allowed operation = READ from host = 10.0.0.1 on "
    "resource = Topic:LITERAL:orders for request = Fetch with resourceRefCount = 1 based on rule SuperUser "
    "(kafka.authorizer.logger)\n"
)


def line_of(number: int) -> str:
    return LINE.format(number // 60_000 % 60, number // 1_000 % 60, number % 1_000, number)


@contextmanager
def following(tmp_path: Path, *more: str) -> "Iterator[subprocess.Popen[bytes]]":
    """The command as a process, which is killed at the end; it prints into files."""
    command = [sys.executable, "-m", "aclog", "usage-index", "--accesses", str(tmp_path / "logs")]
    command += ["--acls", str(tmp_path / "acls.jsonl"), "--index", str(tmp_path / "index"), "--follow"]
    with (tmp_path / "out").open("ab") as out, (tmp_path / "err").open("ab") as err:
        process = subprocess.Popen([*command, "--interval", "0.05", *more], stdout=out, stderr=err)
    try:
        yield process
    finally:
        process.kill()
        process.wait(SECONDS)


def counted(tmp_path: Path) -> int:
    """How many accesses the index has."""
    with suppress(ConfigError), UsageIndex.open(tmp_path / "index") as index:  # perhaps it is only being made
        return sum(run.accesses for run in index.runs())
    return 0


def write(log: Path, number: int, count: int) -> int:
    """Append so many lines, and return the next number."""
    with log.open("a") as file:
        file.writelines(line_of(each) for each in range(number, number + count))
    return number + count


def rotate(log: Path, number: int) -> None:
    rotated = log.with_name(f"{log.name}.{number}")
    if number % 2:
        log.rename(rotated)
        log.touch()
    else:
        rotated.write_bytes(log.read_bytes())
        log.write_bytes(b"")
    if number % 3 == 0:
        rotated.with_name(f"{rotated.name}.gz").write_bytes(gzip.compress(rotated.read_bytes()))
        rotated.unlink()


@pytest.mark.process
@pytest.mark.tier("all")
def test_killed_again_and_again_each_access_counts_once(tmp_path):
    chance, number = random.Random(38), 0
    written(tmp_path / "acls.jsonl", RULES)
    log = tmp_path / "logs/kafka-authorizer.log"
    log.parent.mkdir()
    (log.parent / "server.log").write_text("[2026-11-21 10:00:00,000] INFO started (kafka.server.KafkaServer)\n" * 40)
    log.write_text(line_of(0))
    number = 1
    for kill in range(KILLS):
        before = counted(tmp_path)
        with following(tmp_path) as process:
            number = write(log, number, 20)
            if kill % 4 == 0:
                wait_until(lambda before=before: counted(tmp_path) > before, "a batch", 60)
            deadline = time.monotonic() + chance.uniform(0.5, 5)
            while time.monotonic() < deadline:
                number = write(log, number, chance.choice([1, 7, 300]))
                if chance.random() < 0.05:
                    rotate(log, chance.randrange(1, 1_000_000))
                time.sleep(chance.uniform(0, 0.1))
            assert process.poll() is None, (tmp_path / "err").read_text()
            process.send_signal(signal.SIGKILL)
    printed = (tmp_path / "err").stat().st_size
    with following(tmp_path, "--format", "jsonl") as process:
        wait_until(lambda: counted(tmp_path) >= number, lambda: (counted(tmp_path), number), 60)
        # The last one that was killed may have counted all: this one handles signals once it has looked.
        wait_until(lambda: (tmp_path / "err").stat().st_size > printed, "a look", 60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0, (tmp_path / "err").read_text()
    with UsageIndex.open(tmp_path / "index") as index:
        used = index.used(0, 60_000)
        texts = index.texts(used.numbers.tolist())
        names = Counter({text["principal"]: int(count) for text, count in zip(texts, used.matched, strict=True)})
        assert sum(run.accesses for run in index.runs()) == number
        assert int(index.coverage().rows.sum()) == number
        assert len(index.runs()) > KILLS // 2
    assert names == {"User:*": number}
    status = (tmp_path / "err").read_text().splitlines()
    assert all("accesses added" in line for line in status if "files" in line)
    rows = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert all(row["accesses"] > 0 for row in rows)
    again = aclog(
        *("usage-index", "--accesses", tmp_path / "logs", "--acls", tmp_path / "acls.jsonl"),
        *("--index", tmp_path / "index"),
    )
    assert again.ok().lines[-1] == "nothing new"


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--interval", "0"], "--interval 0: expected seconds above 0"),
        (["--format", "table"], "--follow with --format table: expected text or jsonl"),
        (["--accesses", "-"], "--accesses -: expected files or a topic with --follow"),
        (["--accesses", "none.log"], "none.log: no such file"),
    ],
)
def test_what_cannot_be_followed_is_refused(tmp_path, flags, error):
    acls, log = written(tmp_path / "acls.jsonl", RULES), written(tmp_path / "a.log", [ACCESS])
    accesses = [] if "--accesses" in flags else ["--accesses", log]
    refused = aclog("usage-index", *accesses, "--acls", acls, "--index", tmp_path / "index", "--follow", *flags)
    assert refused.code == 2
    assert error in refused.complaint
    assert not (tmp_path / "index").exists()


def test_only_the_index_reads_a_topic(tmp_path):
    acls = written(tmp_path / "acls.jsonl", RULES)
    for command in ("usage", "denied", "suggest"):
        refused = aclog(command, "--acls", acls, "--accesses", "kafka://h:9092/log")
        assert refused.code == 2
        assert "--accesses kafka://h:9092/log: only aclog accesses index reads a topic" in refused.complaint


@pytest.fixture
def followed(tmp_path):
    """What follows a log of unreadable accesses, and their index."""
    (tmp_path / "a.log").write_text((line_of(1) + line_of(2)).replace("is Allowed", "is Allowed by chance"))
    acls, directory = written(tmp_path / "acls.jsonl", RULES), tmp_path / "index"
    flags = AccessesFlags(accesses=[str(tmp_path / "a.log")], explain_unread=1)
    with file_feed(flags) as feed, UsageIndex.create(directory) as index:
        runs = IndexRuns(index=index, settings=Settings(), configs=frozenset())
        yield feed, runs, SourceFlags(acls=str(acls)).choose


def test_unread_accesses_are_noted_while_their_log_waits_for_more(followed):
    feed, runs, choose = followed
    for _ in range(2):
        with pytest.raises(NothingTakenError, match="but the index notes that 2 accesses"):
            feed.step(runs, choose)
    assert sum(span.accesses for span in runs.index.unread(EARLIEST, LATEST).spans.values()) == 2


def test_unread_lines_are_explained_at_the_first_look(followed, capsys):
    feed, runs, choose = followed
    for _ in range(2):
        with pytest.raises(NothingTakenError):
            feed.step(runs, choose)
    assert capsys.readouterr().err.count("a.log:1:") == 1
