"""An image file overwritten in place while it is in use: no process tells what the other file says as its state."""

from pathlib import Path

import pytest

import aclog
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.settings import Generation
from aclog.authorizer.standard import build_authorizer
from aclog.cli.authorize_lines import LineDecider
from aclog.metalog.errors import LogError
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.files import image_path
from aclog.shell.command import ShellState
from aclog.snapshots import publisher
from aclog.snapshots.history import RuleWatch
from aclog.snapshots.publisher import follow, recover
from aclog.sources.checkpoint import CheckpointSource
from aclog.sources.logs import LogSource
from tests.support.builders.image_files import RULES, overwrite, write_pair
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl

OVERWRITTEN = "overwritten or truncated while it was in use"
REQUEST = (
    b"""{"principal":"User:alice","operation":"READ","host":"10.0.0.1","resourceType":"TOPIC","resourceName":"1"}"""
)
ALLOWED, DENIED = b'{"decision":"ALLOWED"', b'{"decision":"DENIED"'


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint with an image file; the log goes on after it."""
    (tmp_path / "log").mkdir()
    path = write_pair(tmp_path / "log")
    write_log(tmp_path / "log", [acl(8)], [acl(9)], base=RULES)
    return path


@pytest.fixture
def log(checkpoint: Path) -> Path:
    return checkpoint.parent


def permissions(acls):
    return {rule.acl.permission_type for rule in acls}


def test_a_log_is_read_again(log, checkpoint):
    notes = []
    source = LogSource(log, notes.append)
    found = source.image()
    assert len(found.acls) == RULES + 2
    overwrite(checkpoint)
    assert permissions(source.image().acls) == {3}
    assert len(source.image().acls) == RULES + 2
    assert any("ignored: reading the checkpoint instead" in note for note in notes)
    assert permissions(found.acls) == {2, 3}, "the file was not mapped: this tests nothing"


def test_a_checkpoint_is_not_shown(checkpoint):
    source = CheckpointSource(checkpoint, lambda _: None)
    source.image()
    overwrite(checkpoint)
    with pytest.raises(LogError, match=OVERWRITTEN):
        source.image()


def test_a_shell_shows_it_no_more(log, checkpoint):
    state = ShellState(source=LogSource(log, lambda _: None))
    state.go_to(RULES)
    assert permissions(state.image().acls) == {3}
    overwrite(checkpoint)
    with pytest.raises(LogError, match=OVERWRITTEN):
        state.tree()
    state.go_to(RULES)
    assert permissions(state.image().acls) == {3}


def followed(log, reader, image):
    def idle():
        raise AssertionError("nobody noticed")

    return follow(LogSource(log, lambda _: None), reader, image, idle)


def test_who_follows_a_log_stops(log, checkpoint, monkeypatch):
    monkeypatch.setattr(publisher, "WAIT_S", 0.01)
    with open_reader(log) as reader:
        steps = followed(log, reader, recover(log, RULES).image)
        next(steps)
        overwrite(checkpoint)
        next(steps)  # read with the one before, in the same moment
        with pytest.raises(LogError, match=OVERWRITTEN):
            next(steps)


def test_a_watch_stops_and_skips_nothing(log, checkpoint):
    with open_reader(log) as reader:
        watch = RuleWatch.after(
            recover(log, RULES).image, reader, newest=lambda: None, notify=lambda _: None, merge_at=0
        )
        overwrite(checkpoint)
        for _ in range(2):
            with pytest.raises(LogError, match=OVERWRITTEN):
                watch.step(1)
        assert watch.end_offset == RULES


@pytest.mark.parametrize("merging", ["recovery", "following", "watch"])
def test_it_gets_into_no_merged_index(log, checkpoint, monkeypatch, merging):
    """There nobody could tell it from a good one any more."""
    image = recover(log, RULES).image

    merged = AclsImage.merged

    def overwritten(acls, *pause):
        if not (checkpoint.parent / "backup").exists():
            overwrite(checkpoint)
        return merged(acls, *pause)

    monkeypatch.setattr(AclsImage, "merged", overwritten)
    monkeypatch.setattr(publisher, "_MANY_CHANGES", 0)
    monkeypatch.setattr("aclog.snapshots.publisher.fold_at", lambda _: 1)
    with open_reader(log) as reader:
        watch = RuleWatch.after(image, reader, newest=lambda: None, notify=lambda _: None, merge_at=0)
        merge = {
            "recovery": lambda: recover(log),
            "following": lambda: list(followed(log, reader, image)),
            "watch": lambda: [watch.step(0.01) for _ in range(3)],
        }
        with pytest.raises(LogError, match=OVERWRITTEN):
            merge[merging]()


def test_lines_are_not_decided_by_it(checkpoint):
    acls = CheckpointSource(checkpoint, lambda _: None).image().acls
    decider = LineDecider({Generation.V4_3: build_authorizer(acls, cache=False)}, acls)
    (line,) = decider.decide_lines([REQUEST])
    assert line.startswith(ALLOWED)
    overwrite(checkpoint)
    with pytest.raises(LogError, match=OVERWRITTEN):
        decider.decide_lines([REQUEST.replace(b'"1"', b'"2"')])


def test_an_authorizer_gives_no_answer_by_it(checkpoint):
    authorizer = aclog.open_log(checkpoint).image().authorizer()
    assert authorizer.check("User:alice", "READ", "1")
    overwrite(checkpoint)
    for ask in (
        lambda: authorizer.check("User:alice", "READ", "2"),
        lambda: authorizer.check_any("User:alice", "READ", "TOPIC"),
        lambda: authorizer.who_can("READ", "2"),
        lambda: authorizer.what_can("User:alice"),
    ):
        with pytest.raises(aclog.LogError, match=OVERWRITTEN):
            ask()


def test_the_same_content_again_is_no_reason_to_read_again(log, checkpoint):
    source = LogSource(log, lambda _: None)
    before = source.image()
    image_path(checkpoint).touch()
    assert source.image() is before
