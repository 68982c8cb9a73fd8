"""`aclog migrate` in a process of its own, which may die in the midst of any call that changes something.

    python -m tests.scenarios.migration.running NUMBER migrate ...

It dies at the call number NUMBER, and writes batches of 200 records then, so that there are many of them; -1: it does
not die, and is as anybody's.
"""

import subprocess
import sys
from pathlib import Path

import aclog.writing
from aclog.__main__ import run
from metalog.filelog.names import list_segments
from snapshots.image import Image
from snapshots.recovery import recover
from tests.support.jvm import ROOT
from tests.support.mirror_zygote import DIED, dying_at

SECONDS = 120
NEVER = -1
_FEW = 200


def start(*arguments: object, dies_at: int = NEVER, **pipes: object) -> subprocess.Popen[str]:
    """Begin a command; whoever starts it ends it."""
    command = [sys.executable, "-m", "tests.scenarios.migration.running", str(dies_at), *map(str, arguments)]
    told = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **pipes}
    return subprocess.Popen(command, cwd=ROOT, encoding="utf-8", **told)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for its end: exit code, stdout, stderr."""
    try:
        out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, out, err


def image_in(directory: Path) -> Image:
    """What a reader sees in a log's directory; nothing where none is."""
    return recover(directory).image if directory.is_dir() and list_segments(directory) else Image.EMPTY


def main() -> None:
    """Run aclog, and die where asked to."""
    number = int(sys.argv[1])
    if number >= 0:
        aclog.writing.MOST_RECORDS = _FEW
        dying_at(number)
    sys.exit(run(sys.argv[2:]))


__all__ = ["DIED", "finish", "image_in", "start"]

if __name__ == "__main__":
    main()
