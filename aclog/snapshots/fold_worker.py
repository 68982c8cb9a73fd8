"""A running process that folds (aclog.snapshots.fold_process), as its parent sees it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Self

from attrs import frozen

from aclog.metalog.printable import printable
from aclog.snapshots.anonymous_file import anonymous_file
from aclog.snapshots.folding import FoldError

PROGRAM = ("-I", "-m", "aclog.snapshots.fold_process")
"""Arguments of the interpreter: nothing of the environment or of the working directory decides what is imported."""

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""So that numpy starts no threads, which would take longer than the rest of its import."""

_MAX_TEXT = 300


@frozen(eq=False)
class Worker:
    """A process, and the descriptor of what it writes to stderr."""

    process: "subprocess.Popen[bytes]"
    errors: int

    @classmethod
    @contextmanager
    def started(cls, program: Sequence[str], files: Sequence[int]) -> Iterator[Self]:
        """Start a process that gets these descriptors; at the end it is gone, whatever it was doing.

        Raises:
            OSError: it cannot be started.

        """
        errors = anonymous_file("aclog-errors")
        try:
            process = subprocess.Popen(  # noqa: S603 - this very program
                [sys.executable, *program, *map(str, files)],
                bufsize=0,  # nothing is left to write when it is gone
                # Its end of this pipe tells it when this process is gone.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=files,
                env={**os.environ, **_ONE_THREAD},
                cwd="/",
                start_new_session=True,  # an interrupt on the terminal is for this process alone
            )
            with process:
                try:
                    yield cls(process, errors)
                finally:
                    process.kill()
        finally:
            os.close(errors)

    def go(self) -> None:
        """Tell it that the files are written: until then it has got ready."""
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):  # `wait` says why
                self.process.stdin.write(b".")

    def wait(self, seconds: float) -> int:
        """Wait until it has folded; return the size of the new base.

        Raises:
            FoldError: it did not say so within this time, or it failed.

        """
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise FoldError(
                f"the process that merges ACLs was ended: it had not done so after {seconds:.0f} s"
            ) from None
        said = self.process.stdout.read() if self.process.stdout is not None else b""
        try:
            answer = json.loads(said)
            size, error = answer.get("size"), answer.get("error")
        except (ValueError, AttributeError):
            size, error = None, None
        if code == 0 and isinstance(size, int) and size > 0:
            return size
        if code < 0:
            # Most likely the system has run out of memory: this process must not need as much.
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            raise FoldError(f"the process that merges ACLs was ended by {name}", here=code != -signal.SIGKILL)
        why = error or self._last_error() or f"it said {said[:_MAX_TEXT]!r}"
        raise FoldError(
            f"the process that merges ACLs failed (exit code {code}): {why}", here="MemoryError" not in str(why)
        )

    def _last_error(self) -> str:
        """Return the last line that it wrote to stderr."""
        size = os.fstat(self.errors).st_size
        text = os.pread(self.errors, 4096, max(size - 4096, 0)).decode(errors="replace")
        return printable((text.strip().splitlines() or [""])[-1])[:_MAX_TEXT]
