"""What a command gives back, line by line."""

from attrs import frozen


@frozen
class Line:
    """A line of output without its end. A name or a rule in it may hold any character, line ends included.

    `failed` marks a complaint: in one-shot mode it goes to stderr and makes the exit code 1. After a line with `flush`
    the next may be long in coming.
    """

    text: str
    failed: bool = False
    flush: bool = False


def complaint(text: str) -> Line:
    """A line that says what did not work."""
    return Line(text, failed=True)
