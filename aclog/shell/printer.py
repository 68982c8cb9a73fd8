"""Printing of a command's output."""

from collections.abc import Iterable
from typing import TextIO

from aclog.metalog.printable import printable
from aclog.shell.command import Line


def print_lines(lines: Iterable[Line], output: TextIO, errors: TextIO) -> bool:
    """Print lines as they arrive, error lines to `errors`; return whether there were no errors.

    On a terminal unprintable characters are escaped, since names are chosen by clients and could contain escape
    sequences. In a pipe lines are unchanged, so that they equal the output of Kafka's shell.
    """
    good = True
    to_terminal = output.isatty()
    for line in lines:
        if line.failed:
            good = False
            output.flush()
            print(printable(line.text), file=errors, flush=True)
        else:
            print(printable(line.text) if to_terminal else line.text, file=output, flush=line.flush)
    output.flush()
    return good
