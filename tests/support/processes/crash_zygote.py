"""A process that has everything imported and forks writers and readers on command, for the crash campaign.

Commands on stdin, one a line: `write DIRECTORY SEED` forks a writer, kills it (SIGKILL) after a random time and says
`done SIGNALLED`; `follow DIRECTORY FILE` forks a reader that writes what it sees to FILE until `FILE.stop` exists and
says `following`. Acknowledged records come as `ack OFFSET VALUE`. Being single-threaded, it may fork.
"""

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

from aclog.metalog.batches import decode_batch, iter_batches
from aclog.metalog.errors import LogError
from aclog.metalog.filelog import open_log, open_reader

APPENDERS = 4
SEGMENT_BYTES = 20_000
_TOPIC_RECORD = b"\x01\x02\x00"
"""What a value begins with, so that verify takes it for a record that nobody looks into."""


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def name_of(value: bytes) -> str:
    """What tells a value from all others: it without its padding."""
    return value.removeprefix(_TOPIC_RECORD).decode().rstrip(".")


def append_forever(log, seed: int, appender: int) -> None:
    numbers = random.Random(f"{seed} {appender}")
    number = 0
    while True:
        values = [
            _TOPIC_RECORD + f"{seed}-{appender}-{number}-{part}".encode() for part in range(numbers.choice([1, 1, 3]))
        ]
        values[0] += b"." * numbers.choice([0, 0, 50, 50, 800, 30_000])
        try:
            appended = log.append(values, timestamp=0).result()
        except LogError as error:
            say(f"failed {error}")
            return
        for part, value in enumerate(values):
            say(f"ack {appended.base_offset + part} {name_of(value)}")
        number += 1


def brief_pause(fd: int) -> None:
    """In the place of fsync: a kill loses nothing that was written, and 200 kills must not wait for a busy disk."""
    time.sleep(0.0003)


def write(directory: Path, seed: int, opened: int) -> None:
    new_epoch = random.Random(seed).random() < 0.2
    log = open_log(directory, create=True, new_epoch=new_epoch, segment_bytes=SEGMENT_BYTES, fsync=brief_pause)
    os.write(opened, b"!")
    for appender in range(APPENDERS):
        threading.Thread(target=append_forever, args=(log, seed, appender), daemon=True).start()
    time.sleep(60)


def follow(directory: Path, report: Path) -> None:
    """One line `OFFSET VALUE` for each record, `mark N` for each mark that is met."""
    stop = report.with_name(report.name + ".stop")
    while True:
        try:
            reader = open_reader(directory)
        except LogError:
            time.sleep(0.001)
            continue
        break
    offset, mark = reader.start_offset(), -1
    with report.open("w") as out:
        while reader.wait(offset, 0.05) or not stop.exists():
            if reader.high_watermark() != mark:
                mark = reader.high_watermark()
                out.write(f"mark {mark}\n")
            data = reader.read(offset)
            for position, header in iter_batches(data):
                offset = header.end_offset
                if not header.is_control:
                    for record in decode_batch(data, position).records:
                        out.write(f"{header.base_offset + record.offset_delta} {name_of(record.value)}\n")


def forked(work, *arguments) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work(*arguments)
    except BaseException as error:  # noqa: BLE001 - whatever it was, the test must hear of it
        say(f"failed {type(error).__name__} {error}")
        os._exit(1)
    os._exit(0)


def killed_writer(directory: Path, seed: int) -> bool:
    """Fork a writer and kill it: one time in three while it opens, else while it appends; tell whether it was alive."""
    numbers = random.Random(f"kill {seed}")
    opened, signal_opened = os.pipe()
    child = forked(write, directory, seed, signal_opened)
    os.close(signal_opened)
    if numbers.random() > 1 / 3:
        os.read(opened, 1)
    time.sleep(numbers.uniform(0.0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.close(opened)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def main() -> None:
    readers = []
    for line in sys.stdin:
        command, directory, argument = line.split()
        if command == "follow":
            readers.append(forked(follow, Path(directory), Path(argument)))
            say("following")
            continue
        say(f"done {killed_writer(Path(directory), int(argument))}")
    for reader in readers:
        os.waitpid(reader, 0)


if __name__ == "__main__":
    main()
