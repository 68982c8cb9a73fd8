"""Lines on their way out: to a terminal without what could garble it, elsewhere as they are."""

from collections.abc import Iterable
from typing import TextIO

from aclog.shell.command import Line
from aclog.shell.path_names import printable


def print_lines(lines: Iterable[Line], output: TextIO, errors: TextIO) -> bool:
    """Print lines as they come, complaints to `errors`; tell whether there were none.

    On a terminal, control characters that a hostile name brought along are shown encoded; in a pipe a line is what it
    is, so that it equals Kafka's output.
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
