"""Entry point of the `aclog` command.

Little is imported here: what is interrupted while the rest is imported ends as any interrupted command does.
"""

import gc
import os
import signal
import sys
from collections.abc import Sequence

_INTERRUPTED = 130


def main() -> None:
    """Run the command line of this process, and exit."""
    _open_closed_streams()
    try:
        # numpy's linear algebra is used nowhere, but the threads that it starts spin for a quarter of a second of CPU.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        # kio imports hypothesis where it is installed, for strategies of its types: 0.4 s, and a directory .hypothesis.
        # An import of what is None here raises ModuleNotFoundError.
        sys.modules["hypothesis"] = None  # type: ignore[assignment]
        if "spark" not in sys.argv:
            sys.meta_path.insert(0, _NoPandas())
        # Images have no cycles, and changes live until they are merged: looking at many of them, or all, only costs
        # pauses. What a command imports has no garbage either, and makes up to 100,000 objects: one look at them takes
        # a tenth of a short command's time. Servers set a lower threshold, for shorter pauses.
        gc.freeze()
        gc.set_threshold(200_000, 2, 10_000)
        code = run(sys.argv[1:])
        gc.freeze()  # everything ends with the process: a last collection takes a tenth of a short command's time
        _end_at_interrupt()
    except KeyboardInterrupt:
        _end_at_interrupt()
        sys.stderr.write("aclog: interrupted\n")
        code = _INTERRUPTED
    sys.exit(code)


class _NoPandas:
    """A finder of modules that does not find pandas.

    pyarrow imports it where it is installed, to recognize its columns, which takes 0.2 s of CPU: only Spark has some.
    Compiled code takes what is None in `sys.modules` for a module.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """See importlib.abc.MetaPathFinder. Raises ModuleNotFoundError: it is pandas."""
        del path, target
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


def _end_at_interrupt() -> None:
    """Let another interrupt end the process at once: nothing is left to end in order, and no traceback is of use."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _open_closed_streams() -> None:
    """Have /dev/null for a standard stream that the caller has closed.

    Without it, errors would go to stdout, and a file that is opened would take the stream's number.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None and os.open(os.devnull, os.O_RDWR) == number:
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; see aclog.cli.app."""
    from aclog.cli import app

    return app.run(arguments)


if __name__ == "__main__":
    main()
