"""A log that grows and is rotated under its reader, which is killed at any time: each line is read once."""

import errno
import gzip
import os
import random
import socket
from collections import Counter
from datetime import UTC
from pathlib import Path

import pytest
from attrs import define, field

from aclog.metalog.errors import ConfigError
from aclog.usage.accesses import followed
from aclog.usage.accesses.access_log import NewAccesses, accesses_in, find_accesses, read_part
from aclog.usage.accesses.followed import FollowedLog
from tests.support.spark.access_logs import audit_text


def line_of(number: int) -> bytes:
    return audit_text(principal=f"User:{number}", name=f"topic-{number}").encode() + b"\n"


@define
class Broker:
    """Writes lines, and rotates its log in each way that is usual."""

    directory: Path
    name: str
    numbers: "list[int]" = field(factory=list)
    rotated: int = 0
    pending: bytes = b""
    """The rest of a line that is being written."""

    @property
    def log(self) -> Path:
        return self.directory / self.name

    def write(self, random: random.Random, next_number: "list[int]") -> None:
        data = self.pending
        for _ in range(random.choice([1, 1, 2, 40])):
            data += line_of(next_number[0])
            self.numbers.append(next_number[0])
            next_number[0] += 1
        cut = random.randrange(len(data) - 80, len(data)) if random.random() < 0.3 else len(data)
        self.pending = data[cut:]
        with self.log.open("ab") as file:
            file.write(data[:cut])

    def finish_line(self) -> None:
        with self.log.open("ab") as file:
            file.write(self.pending)
        self.pending = b""

    def _next(self) -> Path:
        self.rotated += 1
        return self.directory / f"{self.name}.{self.rotated}"

    def steps_of_rotation(self, random: random.Random):
        """Yield between the steps of a rotation, at which a reader may look."""
        self.finish_line()
        rotated = self._next()
        if random.random() < 0.5:
            self.log.rename(rotated)
            yield
            self.log.touch()
        else:
            data = self.log.read_bytes()
            with rotated.open("wb") as copy:
                for at in range(2):
                    copy.write(data[at * len(data) // 2 : (at + 1) * len(data) // 2])
                    copy.flush()
                    yield
            self.log.write_bytes(b"")
        yield
        if random.random() < 0.6:
            packed = gzip.compress(rotated.read_bytes())
            path = rotated.with_name(rotated.name + ".gz")
            with path.open("wb") as file:
                file.write(packed[: len(packed) // 2])
                file.flush()
                yield
                file.write(packed[len(packed) // 2 :])
            yield
            rotated.unlink()


@define
class Index:
    """What an index knows, in memory."""

    keys: "set[tuple[int, bytes]]" = field(factory=set)
    principals: "Counter[str]" = field(factory=Counter)

    def take(self, new: NewAccesses) -> None:
        for part in new.input.parts:
            for batch in read_part(part):
                self.principals.update(batch.rows.column("principal").to_pylist())
        self.keys |= {part.content.key for part in new.contents}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("by", ["directory", "file", "glob"])
def test_each_line_is_read_once(tmp_path, monkeypatch, seed, by):
    chance, next_number, index = random.Random(f"{seed} {by}"), [0], Index()
    brokers = [Broker(tmp_path, f"kafka-authorizer.log{at or ''}") for at in range(1 if by == "file" else 2)]
    (tmp_path / "server.log").write_bytes(b"[2026-11-21 10:00:00,000] INFO started (kafka.server)\n" * 900)
    paths = {"directory": tmp_path, "file": brokers[0].log, "glob": tmp_path / "*"}
    for broker in brokers:
        broker.log.touch()

    def follower():
        return FollowedLog(paths=[str(paths[by])], zone=UTC)

    following, rotation = follower(), iter(())

    def examined(*args, **more):
        if chance.random() < 0.1:  # the broker rotates its log while it is being read
            next(rotation, None)
        return accesses_in(*args, **more)

    monkeypatch.setattr(followed, "accesses_in", examined)

    def look():
        nonlocal following
        try:
            new = following.look(lambda: index.keys, lambda *_: None)
            Index().take(new)
        except (ConfigError, OSError):  # what was renamed or truncated meanwhile is read at the next look
            return
        kind = chance.random()
        if kind < 0.1:  # killed before it was added
            following = follower()
        elif kind < 0.2:  # not added: the batch waits for more
            pass
        else:
            index.take(new)
            if kind < 0.3:  # killed after it
                following = follower()
            else:
                following.confirm()

    for _ in range(25):
        broker = chance.choice(brokers)
        if chance.random() < 0.75 or not broker.log.stat().st_size:
            broker.write(chance, next_number)
        else:
            rotation = broker.steps_of_rotation(chance)
            for _ in rotation:
                if chance.random() < 0.6:
                    look()
        if chance.random() < 0.7:
            look()
    for broker in brokers:
        broker.finish_line()
    new = following.look(lambda: index.keys, lambda *_: None)
    index.take(new)
    following.confirm()
    assert not following.troubles
    assert not following.look(lambda: index.keys, lambda *_: None).contents
    expected = Counter(f"User:{number}" for broker in brokers for number in broker.numbers)
    assert index.principals == expected


def test_a_file_that_is_renamed_while_it_is_examined_is_read_at_the_next_look(tmp_path, monkeypatch):
    log, index = tmp_path / "kafka-authorizer.log", Index()
    log.write_bytes(line_of(1))
    following = FollowedLog(paths=[str(tmp_path)], zone=UTC)

    def renamed(*args, **more):
        if log.exists():
            log.rename(tmp_path / "kafka-authorizer.log.1")
        return accesses_in(*args, **more)

    monkeypatch.setattr(followed, "accesses_in", renamed)
    for _ in range(2):
        index.take(following.look(lambda: index.keys, lambda *_: None))
        following.confirm()
    assert index.principals == Counter({"User:1": 1})
    assert not following.troubles


def test_a_damaged_file_is_named_and_the_others_are_read(tmp_path):
    index, following = Index(), FollowedLog(paths=[str(tmp_path)], zone=UTC)
    (tmp_path / "a.log").write_bytes(line_of(1))
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(line_of(2))[:-4])
    index.take(following.look(lambda: index.keys, lambda *_: None))
    following.confirm()
    assert index.principals == Counter({"User:1": 1})
    assert "not a complete gzip file" in following.troubles[str(tmp_path / "b.log.gz")]
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(line_of(2)))
    index.take(following.look(lambda: index.keys, lambda *_: None))
    assert index.principals == Counter({"User:1": 1, "User:2": 1})
    assert not following.troubles


def test_a_log_that_is_truncated_and_grows_beyond_its_old_size_is_read_anew(tmp_path):
    index, following = Index(), FollowedLog(paths=[str(tmp_path)], zone=UTC)
    for numbers in ([1, 2], [3, 4, 5, 6], [7, 8, 9, 10, 11]):
        with (tmp_path / "a.log").open("r+b" if (tmp_path / "a.log").exists() else "wb") as file:
            file.truncate(0)
            file.write(b"".join(map(line_of, numbers)))
        for _ in range(2):
            index.take(following.look(lambda: index.keys, lambda *_: None))
            following.confirm()
    assert index.principals == Counter({f"User:{number}": 1 for number in range(1, 12)})


def look(paths) -> "tuple[Index, FollowedLog]":
    index, following = Index(), FollowedLog(paths=[str(each) for each in paths], zone=UTC)
    index.take(following.look(lambda: index.keys, lambda *_: None))
    return index, following


def test_a_pipe_or_socket_beside_a_log_is_named_and_the_log_is_read(tmp_path):
    log = tmp_path / "kafka-authorizer.log"
    log.write_bytes(line_of(1))
    os.mkfifo(tmp_path / "kafka-authorizer.log.fifo")
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(tmp_path / "kafka-authorizer.log.socket"))
        index, following = look([log])
    assert index.principals == Counter({"User:1": 1})
    assert sorted(following.troubles.values()) == [
        f"{log}.fifo: not a regular file",
        f"{log}.socket: not a regular file",
    ]


def test_a_link_to_itself_does_not_stop_the_others(tmp_path):
    (tmp_path / "a.log").write_bytes(line_of(1))
    (tmp_path / "loop.log").symlink_to("loop.log")
    assert look([tmp_path])[0].principals == Counter({"User:1": 1})


def test_a_name_with_the_characters_of_a_glob_is_followed(tmp_path):
    log = tmp_path / "broker[1].log"
    log.write_bytes(line_of(1))
    log.with_name("broker[1].log.1").write_bytes(line_of(2))
    assert look([log])[0].principals == Counter({"User:1": 1, "User:2": 1})


def test_a_directory_that_cannot_be_listed_is_named(tmp_path, monkeypatch):
    (tmp_path / "a.log").write_bytes(line_of(1))
    closed = tmp_path / "closed"
    closed.mkdir()
    scandir = os.scandir

    def refused(path):
        if str(path) == str(closed):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)  # permissions do not apply to root
    index, following = look([tmp_path])
    assert index.principals == Counter({"User:1": 1})
    assert following.troubles == {str(closed): f"{closed}: Permission denied"}
    with pytest.raises(PermissionError, match="closed"):
        find_accesses([str(tmp_path)], UTC)
