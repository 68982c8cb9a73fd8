"""`log.watch()` and `watch_async()`: no change is lost, the watch ends with its log, and no thread stays."""

import asyncio
import shutil
import threading
from itertools import islice
from pathlib import Path

import pytest

import aclog
from tests.support.builders.state_logs import damage, write_log
from tests.support.builders.state_records import acl, removal
from tests.support.cli import command
from tests.support.processes.waiting import wait_until

SMALL = Path(__file__).parents[1] / "data/kafka-4.3.1-small/__cluster_metadata-0"


def added(directory, topic):
    flags = ("--topic", topic, "--allow-principal", "User:new", "--operation", "READ")
    command.aclog("acls", "add", "--log", directory, *flags).ok()


@pytest.fixture
def directory(tmp_path):
    """A log that aclog writes."""
    rules = command.aclog("acls", "list", "--log", SMALL, "--format", "jsonl").ok().out
    command.aclog("import", "-", "--log", tmp_path / "log", stdin=rules.encode()).ok()
    return tmp_path / "log"


def watchers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("aclog-watch")]


def test_changes_after_an_image_are_all_told(directory):
    with aclog.open_log(directory) as log:
        image = log.image()
        added(directory, "first")
        watch = log.watch(after=image)
        newest = log.watch()
        added(directory, "second")
        changes = list(islice(watch, 2))
        assert [change.rule.resource_name for change in changes] == ["first", "second"]
        assert next(newest) == changes[1]
        assert changes == [change for change in log.history() if change.offset >= image.end_offset]
        again = log.watch(after=changes[0].end_offset)
        assert next(again) == changes[1]
        assert str(changes[0]).startswith(f"offset {changes[0].offset}, 2")
        assert "Z: added ALLOW User:new" in str(changes[0])


def test_from_the_beginning_a_watch_is_the_history():
    with aclog.open_log(SMALL) as log:
        history = list(log.history())
        assert list(islice(log.watch(after=0), len(history))) == history
        half = history[len(history) // 2]
        rest = [change for change in history if change.end_offset > half.end_offset]
        assert list(islice(log.watch(after=half.end_offset), len(rest))) == rest


def test_closing_the_log_ends_its_watches(directory):
    log, seen = aclog.open_log(directory), []
    watch = log.watch()
    thread = threading.Thread(target=lambda: [seen.append(change) for change in watch])
    thread.start()
    added(directory, "orders")
    wait_until(lambda: seen)
    log.close()
    thread.join(60)
    assert not thread.is_alive()
    with pytest.raises(aclog.LogError, match="closed"):
        log.watch()


def test_what_has_no_changes():
    with aclog.open_log(next(SMALL.glob("*.checkpoint"))) as log:
        for watch in (log.watch, log.watch_async):
            with pytest.raises(
                aclog.ConfigError, match="a single state does not change: expected the directory of a log"
            ):
                watch()


def test_an_image_of_another_log_is_refused(tmp_path):
    later = aclog.open_log(SMALL).image()
    log = aclog.open_log(write_log(tmp_path / "short", [acl(1)]))
    with log, pytest.raises(aclog.ConfigError, match="expected an image of this log"):
        log.watch(after=later)


def test_what_is_good_before_damage_is_told_first(tmp_path):
    log = write_log(tmp_path / "log", [acl(1)], [acl(2)], [removal(9)], [acl(3)])
    with aclog.open_log(log) as opened:
        watch = opened.watch(after=0)
        assert [next(watch).offset, next(watch).offset] == [0, 1]
        with pytest.raises(aclog.ReplayError, match=r"offset 2: ACL .* is removed, but does not exist"):
            next(watch)
        with pytest.raises(aclog.ReplayError):
            list(islice(opened.watch(after=0), 3))


def test_an_event_loop(directory):
    async def first(log, image):
        async for change in log.watch_async(after=image):
            yielded.append(change)
            return

    yielded = []
    with aclog.open_log(directory) as log:
        image = log.image()

        async def main():
            watching = asyncio.create_task(first(log, image))
            await asyncio.to_thread(added, directory, "async")
            await asyncio.wait_for(watching, 60)

        asyncio.run(main())
        assert [change.rule.resource_name for change in yielded] == ["async"]
    wait_until(lambda: not watchers())


def test_a_cancelled_watch_leaves_no_thread_and_can_be_gone_on_with(directory):
    seen = []

    async def watch(log, after):
        async for change in log.watch_async(after=after):
            seen.append(change)  # noqa: PERF401  # one by one

    async def main(log, image):
        task = asyncio.create_task(watch(log, image))
        await asyncio.to_thread(added, directory, "first")
        while not seen:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while watchers():
            await asyncio.sleep(0.005)
        task = asyncio.create_task(watch(log, seen[-1].end_offset))
        await asyncio.to_thread(added, directory, "second")
        while seen[-1].rule.resource_name != "second":
            await asyncio.sleep(0.005)
        log.close()
        await asyncio.wait_for(task, 60)

    with aclog.open_log(directory) as log:
        image = log.image()
        asyncio.run(main(log, image))
    assert {change.rule.resource_name for change in seen} == {"first", "second"}
    assert [change.offset for change in seen] == sorted({change.offset for change in seen})


def test_the_error_of_a_deleted_log(directory):
    with aclog.open_log(directory) as log:
        watch = log.watch(after=0)
        next(watch)
        damage(next(directory.glob("*.log")))
        with pytest.raises(aclog.MetadataError):
            list(islice(log.watch(after=0), 100))
        shutil.rmtree(directory)
        with pytest.raises(aclog.MetadataError):
            list(watch)


def test_threads_share_a_log(directory):
    """Each state continues from the one before: two threads must not make it at once."""
    with aclog.open_log(directory) as log:
        start, seen = log.image(), []

        def read():
            for _ in range(50):
                image = log.image()
                seen.append((image.end_offset, len(image)))

        threads = [threading.Thread(target=read) for _ in range(4)]
        watch = log.watch(after=start)
        for thread in threads:
            thread.start()
        for number in range(5):
            added(directory, f"topic-{number}")
        for thread in threads:
            thread.join(60)
        assert {offset - len_ for offset, len_ in seen} == {start.end_offset - len(start)}
        assert len(list(islice(watch, 5))) == 5
        assert len(log.image()) == len(start) + 5
