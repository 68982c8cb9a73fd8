"""A process that has everything imported and forks mirrors that die, as often as a test asks for it.

Commands on stdin, one a line. `step DIRECTORY SOURCE NUMBER`: bring the mirror in DIRECTORY up with what is in SOURCE
(see `bring`), but end at once in the midst of the call number NUMBER to the operating system that changes something;
says `died`, or `done` where there were not as many. `follow DIRECTORY ADDRESS COUNT/SECONDS`: mirror the quorum at
ADDRESS, and be killed (SIGKILL) that long after so many stretches have been appended; says `died`. Being
single-threaded, it may fork.
"""

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Self

from aclog.client.fetching import EpochEnd, ObserverOptions
from aclog.client.quorum_log import QuorumLog, QuorumMirror
from aclog.config.node_config import HostPort
from aclog.metalog.batches import BatchRun
from aclog.metalog.filelog.files import list_checkpoints
from aclog.metalog.filelog.mirror import MirrorLog, open_mirror
from aclog.metalog.machine import disk
from tests.support.processes.waiting import SECONDS

SEGMENT_BYTES = 1500
CHUNK_BYTES = 700
CLUSTER = "mirrored"
LOG = "log.bin"
DIED = 9
_CHANGING = ("open", "write", "pwrite", "fsync", "replace", "rename", "mkdir", "unlink", "ftruncate")


def bring(directory: Path, source: Path) -> None:
    """Bring a mirror up: to the snapshot in `source`, if one is there and it is not that far, and to the end of LOG."""
    with open_mirror(directory, segment_bytes=SEGMENT_BYTES, fsync=os.fsync) as mirror:
        mirror.bind(CLUSTER)
        snapshot = next(iter(list_checkpoints(source)), None)
        start = 0 if snapshot is None else snapshot.end_offset
        if mirror.end is None or mirror.end.end_offset < start:
            mirror.begin(snapshot)
        append_rest(mirror, (source / LOG).read_bytes())


def append_rest(mirror: MirrorLog, batches: bytes) -> None:
    """Append what the mirror does not have yet, in chunks."""
    run = BatchRun.of(batches)
    while mirror.end.end_offset < run.end_offset:
        mirror.append(run.read(mirror.end.end_offset, CHUNK_BYTES)[0])


def dying_at(number: int) -> None:
    """From now on, die in the midst of such a call: a write has been done by half then, anything else not at all.

    The 512 bytes of a high-water mark are written as one: no kill comes between them. A kill loses nothing that was
    written, so nobody waits for the disk.
    """
    os.fsync = disk.fsync = lambda fd: None
    remaining = [number]

    def counted(name, real):
        def call(*arguments, **named):
            remaining[0] -= 1
            if remaining[0] < 0:
                if name == "write":
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os._exit(DIED)
            return real(*arguments, **named)

        return call

    for name in _CHANGING:
        setattr(os, name, counted(name, getattr(os, name)))
        if hasattr(disk, name):
            setattr(disk, name, getattr(os, name))


def step(directory: Path, source: Path, number: int) -> None:
    dying_at(number)
    bring(directory, source)


def follow(directory: Path, address: str, pipe: int) -> None:
    """Mirror for ever, without waiting for a busy disk: a kill loses nothing that was written."""
    host, _, port = address.rpartition(":")
    servers = (HostPort(host=host, port=int(port)),)
    os.fsync = disk.fsync = lambda fd: time.sleep(0.0003)
    with open_mirror(directory, segment_bytes=20 * SEGMENT_BYTES, fsync=os.fsync) as mirror:
        os.write(pipe, b"!")
        options = ObserverOptions(retry_backoff=0.005, max_wait_ms=50, fetch_bytes=20_000)
        end = mirror.end
        after = None if end is None else EpochEnd(epoch=end.epoch, end_offset=end.end_offset)
        with QuorumLog(servers=servers, cluster_id=mirror.cluster_id, options=options, after=after) as quorum:
            QuorumMirror(
                quorum=quorum, mirror=mirror, stop=threading.Event(), advance=lambda done, total: os.write(pipe, b"!")
            ).run(once=False)


def forked(work, *arguments) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work(*arguments)
    except BaseException:  # noqa: BLE001 - the test must hear of it
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def killed_after(count: int, seconds: float, directory: Path, address: str) -> int:
    reader, tells = os.pipe()
    child = forked(follow, directory, address, tells)
    os.close(tells)
    for _ in range(count + 1):
        os.read(reader, 1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.close(reader)
    return child


def main() -> None:
    for line in sys.stdin:
        command, directory, source, number = line.split()
        if command == "step":
            child = forked(step, Path(directory), Path(source), int(number))
        else:
            count, seconds = number.split("/")
            child = killed_after(int(count), float(seconds), Path(directory), source)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        answers = {0: "done", DIED: "died", -signal.SIGKILL: "died"}
        os.write(1, f"{answers.get(code, f'failed with {code}')}\n".encode())


class MirrorZygote:
    """The test's end of it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.processes.mirror_zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            cwd=Path(__file__).parents[3],
        )

    def died_at(self, directory: Path, source: Path, number: int) -> bool:
        """Bring a mirror up, and die at a call of this number; False where it was done before that."""
        return self._ask(f"step {directory} {source} {number}") == "died"

    def follow_and_die(self, directory: Path, address: object, count: int, seconds: float) -> None:
        """Mirror until the process is killed, that long after so many stretches have been appended."""
        assert self._ask(f"follow {directory} {address} {count}/{seconds}") == "died"

    def _ask(self, command: str) -> str:
        self._process.stdin.write(command + "\n")
        answer = self._process.stdout.readline().strip()
        assert answer in {"died", "done"}, f"{command}: {answer}"
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait(SECONDS)
        self._process.stdout.close()


if __name__ == "__main__":
    main()
