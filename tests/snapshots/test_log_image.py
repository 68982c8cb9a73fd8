"""The cache of the states of logs: used only for exactly the bytes that were replayed, and never an error."""

import os
from pathlib import Path

import pytest

from aclog.metalog.filelog.files import list_checkpoints, segment_name
from aclog.metalog.records import UserScramCredentialRecord
from aclog.snapshots import log_image
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.image_file import MappedFile, digest_of_file
from aclog.snapshots.log_image import LogImages, cache_directory
from aclog.snapshots.publisher import recover
from aclog.sources.logs import LogSource
from tests.support.builders.state_logs import damage, write_log
from tests.support.builders.state_records import acl, removal

SCRAM = UserScramCredentialRecord(
    name="alice", mechanism=1, salt=b"s" * 16, stored_key=b"k" * 32, server_key=b"v" * 32, iterations=4096
)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(log_image, "LEAST_BYTES", 1)
    monkeypatch.setattr(log_image, "_SETTLED_NS", 0)


@pytest.fixture
def images(tmp_path):
    return LogImages(directory=tmp_path / "cache")


def state(log, images):
    """The state of a log, and whether it is mapped from the cache."""
    source = LogSource(log, lambda _: None, images=images)
    try:
        image = source.image()
    finally:
        source.close()
    replayed = recover(log, strict=False).image
    assert image.provenance == replayed.provenance
    assert sorted(map(str, image.acls)) == sorted(map(str, replayed.acls))
    return image, isinstance(image.acls.index.base.buffer.obj, MappedFile)


def rewrite(path: Path, content: bytes) -> None:
    times = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_the_second_read_maps_what_the_first_one_kept(tmp_path, images):
    log = write_log(tmp_path / "log", [acl(1), acl(2)], [removal(1)])
    first, kept = state(log, images)
    assert not kept
    second, kept = state(log, images)
    assert kept
    assert first.provenance == second.provenance
    (path,) = images.directory.iterdir()
    assert (path.stat().st_mode & 0o777, images.directory.stat().st_mode & 0o777) == (0o600, 0o700)


def test_what_was_appended_since_is_replayed_onto_it(tmp_path, images):
    log = write_log(tmp_path / "log", [acl(1), acl(2)])
    state(log, images)
    longer = write_log(tmp_path / "longer", [acl(1), acl(2)], [removal(1), acl(3)])
    (segment,) = log.glob("*.log")
    rewrite(segment, next(longer.glob("*.log")).read_bytes())
    image, kept = state(log, images)
    assert kept
    assert (image.end_offset, sorted(rule.acl.resource_name for rule in image.acls)) == (4, ["2", "3"])


def other_log(log, tmp_path):
    other = write_log(tmp_path / "other", [acl(1), acl(9)])
    rewrite(next(log.glob("*.log")), next(other.glob("*.log")).read_bytes())


def other_epochs(log, tmp_path):
    (log / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")


def damaged_cache(log, tmp_path):
    damage(next((tmp_path / "cache").iterdir()))


def cache_of_others(log, tmp_path):
    next((tmp_path / "cache").iterdir()).chmod(0o644)


def linked_cache(log, tmp_path):
    path = next((tmp_path / "cache").iterdir())
    path.symlink_to(path.rename(tmp_path / "elsewhere"))


def no_image(log, tmp_path):
    next((tmp_path / "cache").iterdir()).write_bytes(b"aclogimg")


def with_checkpoint(log, tmp_path):
    write_checkpoint(recover(log).image, log)


@pytest.mark.parametrize(
    "change", [other_log, other_epochs, damaged_cache, cache_of_others, linked_cache, no_image, with_checkpoint]
)
def test_it_is_not_used_if_anything_differs(tmp_path, images, change):
    log = write_log(tmp_path / "log", [acl(1), acl(2)])
    state(log, images)
    assert state(log, images)[1]
    change(log, tmp_path)
    assert not state(log, images)[1]


@pytest.fixture
def hashed(monkeypatch):
    """The sizes that are hashed."""
    sizes = []

    def digest(fd, size):
        sizes.append(size)
        return digest_of_file(fd, size)

    monkeypatch.setattr(log_image, "digest_of_file", digest)
    return sizes


def test_of_a_log_that_is_shorter_than_before_nothing_is_hashed(tmp_path, images, hashed):
    log = write_log(tmp_path / "log", [acl(1), acl(2)], [acl(3)])
    state(log, images)
    assert hashed.pop() == (size := next(log.glob("*.log")).stat().st_size)
    shorter = write_log(tmp_path / "shorter", [acl(1), acl(2), acl(3)])  # as many records in fewer bytes
    rewrite(next(log.glob("*.log")), next(shorter.glob("*.log")).read_bytes())
    assert images.read(log, (), 3) is None
    assert next(log.glob("*.log")).stat().st_size < size
    assert not hashed


def test_a_segment_that_is_still_empty_makes_no_difference(tmp_path, images):
    log = write_log(tmp_path / "log", [acl(1), acl(2)])
    empty = log / segment_name(2)
    empty.touch()
    assert [state(log, images)[1] for _ in range(2)] == [False, True]
    empty.unlink()
    assert state(log, images)[1]


def test_a_log_after_a_checkpoint(tmp_path, images):
    whole = write_log(tmp_path / "whole", *([acl(n)] for n in range(6)))
    log = write_log(tmp_path / "log", [acl(4)], [acl(5)], base=4, times=[5000, 6000])
    write_checkpoint(recover(whole, 5).image, log)
    assert [state(log, images)[1] for _ in range(2)] == [False, True]
    (checkpoint,) = list_checkpoints(log)
    other = recover(write_log(tmp_path / "more", *([acl(n + 10)] for n in range(5)))).image
    rewrite(checkpoint.path, write_checkpoint(other, tmp_path).read_bytes())
    assert not state(log, images)[1]


def test_no_copy_of_secrets(tmp_path, images):
    log = write_log(tmp_path / "log", [acl(1), SCRAM])
    state(log, images)
    assert not images.directory.exists()


def test_nothing_is_kept_of_a_log_that_changed_meanwhile(tmp_path, images):
    log = write_log(tmp_path / "log", [acl(1)])
    image, before = recover(log).image, log_image.stamps_of(log, ())
    other_log(log, tmp_path)
    images.write(log, (), image, before)
    assert not images.directory.exists()


def test_nor_of_one_that_changed_just_now(tmp_path, images, monkeypatch):
    monkeypatch.setattr(log_image, "_SETTLED_NS", 1 << 62)
    log = write_log(tmp_path / "log", [acl(1)])
    images.write(log, (), recover(log).image, log_image.stamps_of(log, ()))
    assert not images.directory.exists()


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    log = write_log(tmp_path / "log", [acl(1)])
    assert not state(log, LogImages(directory=tmp_path / "file" / "cache"))[1]


def test_only_the_last_few_are_kept(tmp_path, images):
    logs = [write_log(tmp_path / f"log-{n}", [acl(n)]) for n in range(7)]
    for log in logs:
        state(log, images)
    assert len(list(images.directory.iterdir())) == 4
    assert state(logs[-1], images)[1]


@pytest.mark.parametrize(
    ("environment", "directory"),
    [
        ({}, Path("/home/a/.cache/aclog")),
        ({"XDG_CACHE_HOME": "/c"}, Path("/c/aclog")),
        ({"XDG_CACHE_HOME": "relative"}, Path("/home/a/.cache/aclog")),
        ({"ACLOG_CACHE": "/x"}, Path("/x")),
        ({"ACLOG_CACHE": "0"}, None),
    ],
)
def test_where_the_cache_is(environment, directory):
    assert cache_directory(environment, Path("/home/a")) == directory
