"""A process that has everything imported and forks `aclog sync` on command, for a campaign of kills.

Commands on stdin, one a line, each answered by a line: `start DIRECTORY SERVER` forks one that polls as fast as it can,
`kill` kills it (SIGKILL) and says `killed`, or the exit code that it ended with before; `once DIRECTORY SERVER` forks
one that polls once and says its exit code. What they print goes to `DIRECTORY.out`. Few records fill a batch here, so
that most polls are transactions. Most rules change with each poll: a removal of any share is believed. Being
single-threaded, it may fork.
"""

import os
import signal
import sys
from pathlib import Path

import aclog.cli.app
import aclog.cli.sync
import aclog.ops.sync
import aclog.sources.live
import aclog.targets.log
from aclog.__main__ import run

MOST_RECORDS = 3


def forked(directory: str, server: str, *flags: str) -> int:
    child = os.fork()
    if child:
        return child
    output = os.open(f"{directory}.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    with Path(os.devnull).open(encoding="utf-8") as sys.stdin:
        os._exit(run(["sync", "--bootstrap-server", server, "--to", directory, "--max-removal", "100", *flags]))


def ended(child: int) -> str:
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return "killed" if code == -signal.SIGKILL else str(code)


def main() -> None:
    aclog.targets.log.MAX_BYTES = 256 + 100 * MOST_RECORDS
    aclog.ops.sync._SETTLE_SECONDS = 0.0  # there is one broker, which is never behind
    child = 0
    for line in sys.stdin:
        command, *words = line.split()
        if command == "start":
            child, answer = forked(*words, "--interval", "0.001"), "started"
        elif command == "kill":
            os.kill(child, signal.SIGKILL)
            child, answer = 0, ended(child)
        else:
            answer = ended(forked(*words, "--once"))
        os.write(1, f"{answer}\n".encode())
    if child:  # a test that failed
        os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main()
