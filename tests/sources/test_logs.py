"""A log that is followed, and another one that is put in its place: no state is made of both."""

import shutil
from pathlib import Path

import pytest

from aclog.console.live import LiveState
from aclog.console.pdp.authzen import EVALUATION, EVALUATIONS
from aclog.console.pdp.opa import PATH
from aclog.console.web.app import WebConsole
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import LogError
from aclog.metalog.filelog import open_log
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.moments import Moment
from aclog.snapshots.publisher import Recovered, recover
from aclog.sources.logs import LogSource, ReplacedError
from tests.support.builders.acls import acl, acl_record
from tests.support.web.asgi import ask, post
from tests.support.web.consoles import console_of
from tests.support.web.points import point_of


def write(directory: Path, first_id: int, *names: str) -> Path:
    """A log with a rule on each name, a batch each; one that is there goes on."""
    with open_log(directory, create=not directory.exists(), timestamp=1) as log:
        for number, name in enumerate(names, first_id):
            log.append([encode_record(acl_record(number, acl(name)))], timestamp=2).result(60)
    return directory


def names(source: LogSource) -> set[str]:
    return {rule.acl.resource_name for rule in source.image().acls}


def longer(at: Path) -> None:
    write(at, 100, "y", "z", "zz")


def as_long(at: Path) -> None:
    write(at, 100, "y", "z")


def older(at: Path) -> None:
    """A backup of the very log: what it lacks had been read."""
    write(at, 1, "first")


def beyond(at: Path) -> None:
    """One that begins where retention could have let the other begin."""
    with open_log(at, create=True, timestamp=1, segment_bytes=1) as log:
        for number in range(6):
            log.append([encode_record(acl_record(100 + number, acl(f"x{number}")))], timestamp=2).result(60)
    image = recover(at).image
    write_checkpoint(image, at)
    with open_log(at) as log:
        assert log.delete_segments_below(image.end_offset) > 3


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write(tmp_path / "log", 1, "first", "second")


@pytest.mark.parametrize("another", [longer, as_long, older, beyond])
@pytest.mark.parametrize("how", ["followed", "recovered"])
def test_another_log_is_refused(directory: Path, another, how: str) -> None:
    source = LogSource(directory, lambda _: None)
    assert names(source) == {"first", "second"}
    if how == "followed":
        write(directory, 3, "third")
        assert names(source) == {"first", "second", "third"}
    directory.rename(directory.with_name("before"))
    another(directory)
    for _ in range(2):
        with pytest.raises(ReplacedError, match="another log is here than the one that was read"):
            source.image()


@pytest.mark.parametrize("another", [longer, as_long, older, beyond])
def test_no_moment_of_another_log_is_answered(directory: Path, another, monkeypatch: pytest.MonkeyPatch) -> None:
    source, recover = LogSource(directory, lambda _: None), LogSource._recover
    source.image()
    assert len(source.image_at(2).acls) == 1

    def overtaken(self: LogSource, moment: Moment | None) -> Recovered:
        found = recover(self, moment)
        directory.rename(directory.with_name("before"))
        another(directory)
        return found

    monkeypatch.setattr(LogSource, "_recover", overtaken)
    with pytest.raises(ReplacedError):
        source.image_at(2)
    monkeypatch.undo()
    with pytest.raises(ReplacedError):
        source.image_at(2)
    assert LogSource(directory, lambda _: None).image().acls, "who has read nothing before"


@pytest.mark.parametrize("another", [longer, as_long, older])
def test_who_answers_about_the_past_says_that_it_is_gone(directory: Path, another) -> None:
    source = LogSource(directory, lambda _: None)
    point, console = point_of(source), console_of(source)
    app, web = point.app(), WebConsole(console=console).app()
    question = {
        "subject": {"type": "User", "id": "app"}, "action": {"name": "READ"},
        "resource": {"type": "topic", "id": "first"}, "context": {"as_of": 2},
    }  # fmt: skip
    later = question | {"context": {"as_of": 3}}
    assert post(app, EVALUATION, question).json["decision"] is True
    assert ask(web, "GET", "/rules?as_of=2").status == 200
    directory.rename(directory.with_name("before"))
    another(directory)
    for path, asked in ((EVALUATION, later), (EVALUATIONS, {"evaluations": [later]}), (PATH, {"input": later})):
        reply = post(app, path, asked)
        assert reply.status == 503
        assert "another log is here" in reply.json["error"]
    reply = ask(web, "GET", "/rules?as_of=3")
    assert reply.status == 503
    assert "another log is here" in reply.text


def test_another_log_behind_a_link_is_refused(directory: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(directory)
    source = LogSource(link, lambda _: None)
    assert names(source) == {"first", "second"}
    link.unlink()
    link.symlink_to(write(tmp_path / "other", 100, "y", "z", "zz"))
    with pytest.raises(ReplacedError):
        source.image()


def test_no_log_is_an_error_and_the_same_one_is_read_on(directory: Path, tmp_path: Path) -> None:
    source = LogSource(directory, lambda _: None)
    source.image()
    kept = directory.rename(tmp_path / "elsewhere")
    with pytest.raises(LogError):
        source.image()
    shutil.copytree(kept, directory)
    write(directory, 3, "third")
    assert names(source) == {"first", "second", "third"}


def test_who_follows_it_says_so_and_confirms_nothing(directory: Path) -> None:
    live = LiveState(source=LogSource(directory, lambda _: None), seconds=60, tell=lambda _: None)
    live._look()
    before = live.newest
    directory.rename(directory.with_name("before"))
    longer(directory)
    live._look()
    assert live.newest is before
    assert "another log is here" in live.trouble
