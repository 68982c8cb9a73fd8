"""Folding in a process: the same as in a thread, and nothing believed that is not."""

import gc
import io
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from attrs import evolve

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.layout import Column, unpack
from aclog.snapshots import compaction
from aclog.snapshots.compaction import FoldError, FoldInProcess
from tests.support.builders.ids import uuid_of
from tests.support.builders.state_records import acl, removal
from tests.support.processes.descriptors import descriptors
from tests.support.processes.waiting import wait_until

BEGIN = "import json, mmap, os, sys; base, changes, result = map(int, sys.argv[1:4]); "
ANSWER = "; os.write(result, data); os.write(1, json.dumps({'size': len(data)}).encode())"
OLD_BASE = BEGIN + "data = bytearray(mmap.mmap(base, 0, access=mmap.ACCESS_READ))"
HANGS = "from aclog.snapshots.helper_process import begin; import os, time; begin(nice=1); {say}; time.sleep(3600)"


def image(count=300):
    """Rules in a base, of which some are removed again, and others on top of it."""
    base = AclsImage.from_acls(()).apply([acl(n, name=f"t{n % 50}", principal=f"User:{n}") for n in range(count)])
    odd = [
        evolve(acl(1001), tagged_fields=((3, b"abc"), (7, b""))),
        evolve(acl(1002), resource_type=99, pattern_type=-3),
        evolve(acl(1003), operation=-128, permission_type=77),
        acl(1004, name="p", principal="no colon"),
        acl(1005, name="größe-\U0001f40d", principal="User:*"),
    ]
    base = base.apply(odd[:3]).merged()
    changes = [removal(n) for n in (0, 17, 1001)] + [acl(2000 + n, name=f"new{n}") for n in range(20)] + odd[3:]
    return base.apply([*changes, evolve(acl(3001), tagged_fields=((1, b"x"),)), evolve(acl(3002), resource_type=-5)])


def folds(*program, **settings):
    return FoldInProcess(smallest=0, **({"program": program} if program else {}), **settings)


def children():
    """The processes of this one, such as the servers that other tests share, zombies included."""
    return {child.pid for child in psutil.Process().children()}


class TestTheSame:
    @pytest.mark.process
    def test_as_in_a_thread(self):
        before = image()
        after, again = folds().fold(before), before.merged()
        assert after.overlay_size == 0
        assert bytes(after.index.base.buffer) == bytes(again.index.base.buffer)
        assert after.digest() == before.digest()

    @pytest.mark.process
    def test_its_own_result_is_the_next_base(self):
        folder, acls = folds(), image()
        for n in range(3):
            acls = folder.fold(acls.apply([removal(20 + n), acl(5000 + n)]))
            assert acls.overlay_size == 0
        assert {rule.id for rule in acls} >= {uuid_of(5000), uuid_of(5001), uuid_of(5002)}
        assert not any(acls.get(uuid_of(20 + n)) for n in range(3))

    @pytest.mark.process
    def test_options_stay(self):
        after = folds().fold(image().with_options(documented=True, cidr=True))
        assert (after.documented, after.cidr) == (True, True)

    def test_a_few_rules_are_folded_here(self):
        folder = FoldInProcess(program=("-c", "raise SystemExit(1)"))
        assert folder.fold(image()).overlay_size == 0

    @pytest.mark.process
    def test_no_descriptor_and_no_process_stays(self):
        folder, acls = folds(), image()
        folder.fold(acls)
        gc.collect()
        folder.tidy()
        descriptors_before, children_before = descriptors(), children()
        for n in range(3):
            folded = folder.fold(acls.apply([acl(7000 + n)]))
            assert len(folded) == len(acls) + 1
            del folded
            folder.tidy()
        with pytest.raises(FoldError):
            folds("-c", "raise SystemExit(1)").fold(acls)
        gc.collect()
        folder.tidy()
        assert not descriptors() - descriptors_before
        assert not children() - children_before


@pytest.mark.process
def test_the_memory_of_a_base_is_freed_after_the_end_too():
    folder, acls = folds(), image()
    gc.collect()
    before = descriptors()
    folded = folder.fold(acls)
    folder.close()
    assert descriptors() - before
    assert len(folded) == len(acls)
    del folded
    gc.collect()
    assert not descriptors() - before


class TestWhatGoesWrong:
    @pytest.mark.parametrize(
        ("program", "what"),
        [
            ("raise SystemExit(3)", "exit code 3"),
            ("import no_such_module", "no_such_module"),
            ("pass", "it printed b''"),
            ("print('{}')", "it printed"),
            ("print('[1]')", "it printed"),
            ("print('{\"size\": 4096}')", "wrote 0 bytes, but reported 4096"),
            (BEGIN + "os.write(result, b'x' * 4096); print('{\"size\": 4096}')", "invalid base"),
            (OLD_BASE + ANSWER, "returned"),
            (OLD_BASE + "; del data[-64:]" + ANSWER, "invalid base"),
        ],
        ids=["exit", "import", "silent", "no size", "no object", "empty", "junk", "the old base", "cut off"],
    )
    @pytest.mark.process
    def test_a_process_that_is_not_to_be_believed(self, program, what):
        with pytest.raises(FoldError, match=what) as error:
            folds("-c", program).fold(image())
        assert error.value.here

    @pytest.mark.parametrize("column", ["IDS", "RESOURCE_BUCKETS", "RESOURCE_DATA", "CELL_PAIRS", "OPERATIONS"])
    @pytest.mark.process
    def test_a_base_with_a_wrong_column(self, column):
        """Not every wrong byte is found here (the process compares all rules by itself), but a wrong column is."""
        acls = image()
        right = acls.merged()
        wrong = bytearray(right.index.base.buffer)
        items = unpack(memoryview(wrong))[Column[column]].cast("B")
        items[:] = bytes(byte ^ 1 for byte in items)
        program = BEGIN + f"data = bytes.fromhex('{wrong.hex()}')" + ANSWER
        with pytest.raises(FoldError, match="returned"):
            folds("-c", program).fold(acls)

    @pytest.mark.process
    def test_one_that_hangs(self):
        with pytest.raises(FoldError, match="timed out after 0 s") as error:
            folds("-c", HANGS.format(say="0"), seconds=0.2).fold(image())
        assert error.value.here

    @pytest.mark.parametrize("program", ["import os; os.kill(os.getpid(), 9)", 'print(\'{"error": "MemoryError: "}\')'])
    @pytest.mark.process
    def test_one_for_which_there_is_no_memory(self, program):
        """This process, which would need as much, must not try."""
        with pytest.raises(FoldError) as error:
            folds("-c", program).fold(image())
        assert not error.value.here

    @pytest.mark.process
    def test_one_that_cannot_be_started(self, monkeypatch):
        monkeypatch.setattr(sys, "executable", "/no/such/python")
        with pytest.raises(FoldError, match="cannot start the compaction process"):
            folds().fold(image())

    @pytest.mark.process
    def test_one_of_another_release(self, monkeypatch):
        monkeypatch.setattr(compaction, "IDENTITY", "message 0")
        with pytest.raises(FoldError, match=r"another version .*restart the node"):
            folds().fold(image())

    @pytest.mark.process
    def test_one_that_is_closed_while_it_works(self):
        folder, failures = folds("-c", HANGS.format(say="0")), []

        def fold():
            try:
                folder.fold(image())
            except FoldError as error:
                failures.append(error)

        thread = threading.Thread(target=fold)
        thread.start()
        while folder._worker is None:
            time.sleep(0.01)
        folder.close()
        thread.join(60)
        assert len(failures) == 1
        with pytest.raises(FoldError):
            folder.fold(image())


def test_a_message_that_is_cut_off_is_refused():
    file = io.BytesIO()
    compaction.write_changes(file, image().index.overlay, lambda: None)
    data = file.getvalue()
    assert len(compaction.read_changes(io.BytesIO(data))[0]) == 24
    with pytest.raises(ValueError, match="Expecting"):
        compaction.read_changes(io.BytesIO(data[: data.index(b"\n") + 1]))


@pytest.mark.process
def test_it_ends_with_its_parent_even_if_that_is_killed(tmp_path):
    told = tmp_path / "pid"
    child = HANGS.format(say=f"os.symlink(str(os.getpid()), {str(told)!r})")
    parent = (
        "from aclog.snapshots.compaction import Worker\n"
        f"with Worker.started(('-c', {child!r}), ()) as worker: worker.wait(3600)"
    )
    with subprocess.Popen([sys.executable, "-c", parent]) as process:
        try:
            wait_until(told.is_symlink)
        finally:
            process.kill()
    pid = int(told.readlink().name)
    wait_until(lambda: not is_running(pid))


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
