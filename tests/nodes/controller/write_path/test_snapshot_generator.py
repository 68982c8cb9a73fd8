"""Image files of a node's checkpoints: made by a process apart, which never outlives the node nor disturbs it."""

import asyncio
import logging
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from aclog.metalog.filelog.files import checkpoint_name, image_path
from aclog.server.controller import snapshot_generator
from aclog.server.controller.snapshot_generator import ImageMaker
from aclog.snapshots.checkpoints import read_image_file, write_checkpoint, write_image_file
from tests.support.builders.random_log import random_image

LOGGER = snapshot_generator.__name__


@pytest.fixture
def checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot_generator, "WORTH_A_FILE", 0)
    return write_checkpoint(random_image(3), tmp_path)


async def made(maker, checkpoint):
    """Wait until everything that was asked for is done."""
    maker.make(checkpoint)
    await maker._making


def processes():
    return [each for each in psutil.Process().children() if each.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.process
async def test_one_is_made_and_a_good_one_is_left_alone(tmp_path, checkpoint, caplog):
    caplog.set_level(logging.INFO, LOGGER)
    maker = ImageMaker(directory=tmp_path)
    await made(maker, checkpoint)
    assert caplog.messages == [f"wrote the image file of {checkpoint.name}"]
    assert read_image_file(checkpoint).acls.digest() == random_image(3).acls.digest()
    written = image_path(checkpoint).stat()
    await made(maker, checkpoint)
    assert image_path(checkpoint).stat().st_ino == written.st_ino
    assert set(tmp_path.iterdir()) == {checkpoint, image_path(checkpoint)}
    await maker.stop()


@pytest.mark.process
async def test_a_damaged_one_is_made_anew(tmp_path, checkpoint):
    path = write_image_file(checkpoint)
    path.write_bytes(path.read_bytes()[:-1])
    await made(ImageMaker(directory=tmp_path), checkpoint)
    assert read_image_file(checkpoint) is not None


async def test_small_checkpoints_need_none(tmp_path, checkpoint, monkeypatch):
    monkeypatch.setattr(snapshot_generator, "WORTH_A_FILE", checkpoint.stat().st_size + 1)
    await made(ImageMaker(directory=tmp_path), checkpoint)
    assert list(tmp_path.iterdir()) == [checkpoint]


async def test_only_the_newest_that_waits_is_made(tmp_path, checkpoint, monkeypatch):
    asked = []
    monkeypatch.setattr(snapshot_generator, "_needs_one", asked.append)
    maker = ImageMaker(directory=tmp_path)
    for name in "abc":
        maker.make(tmp_path / name)
    await maker._making
    assert [path.name for path in asked] == ["c"]


@pytest.mark.process
async def test_nothing_of_the_folder_one_works_in_is_imported(tmp_path, checkpoint, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    for name in ("aclog", "attrs", "json"):
        (elsewhere / name).mkdir(parents=True)
        (elsewhere / name / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(elsewhere)
    await made(ImageMaker(directory=tmp_path), Path(os.path.relpath(checkpoint)))
    assert read_image_file(checkpoint) is not None


@pytest.mark.process
async def test_a_failure_is_a_line_in_the_log(tmp_path, checkpoint, caplog):
    data = bytearray(checkpoint.read_bytes())
    data[-100] ^= 1
    checkpoint.write_bytes(data)
    await made(ImageMaker(directory=tmp_path), checkpoint)
    (said,) = caplog.records
    assert said.levelname == "WARNING"
    assert said.message.startswith(f"no image file of {checkpoint.name}: {checkpoint}: ")
    assert list(tmp_path.iterdir()) == [checkpoint]


async def test_no_process_at_all(tmp_path, checkpoint, monkeypatch, caplog):
    monkeypatch.setattr(snapshot_generator.sys, "executable", str(tmp_path / "none"))
    await made(ImageMaker(directory=tmp_path), checkpoint)
    assert caplog.messages == [f"cannot make the image file of {checkpoint.name}"]


async def test_a_checkpoint_that_is_gone(tmp_path, checkpoint, caplog):
    checkpoint.unlink()
    await made(ImageMaker(directory=tmp_path), checkpoint)
    assert caplog.messages == []


@pytest.mark.process
async def test_it_ends_with_the_node(tmp_path, checkpoint, monkeypatch):
    part = f"{checkpoint.stem}-0123456789abcdef.image.part"
    hangs = f"import time; open({str(tmp_path / part)!r}, 'w'); time.sleep(600)"
    monkeypatch.setattr(snapshot_generator, "_command", lambda _: (sys.executable, "-c", hangs))
    maker = ImageMaker(directory=tmp_path)
    maker.make(checkpoint)
    async with asyncio.timeout(60):
        while not (tmp_path / part).exists():
            await asyncio.sleep(0.01)
    before = processes()
    await maker.stop()
    assert len(processes()) == len(before) - 1
    assert list(tmp_path.iterdir()) == [checkpoint]
    await maker.stop()


@pytest.mark.process
def test_it_ends_when_the_node_was_killed(tmp_path):
    """The kernel closes the node's end of the pipe then."""
    waits = tmp_path / checkpoint_name(1, 1)
    os.mkfifo(waits)  # the process waits for its content
    command = [sys.executable, "-P", "-m", "aclog.snapshots.image_process", str(waits)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, cwd="/")
    process.stdin.close()
    assert process.wait(60) == 1
