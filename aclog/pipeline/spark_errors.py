"""What to say about a failed Spark job: the cause, in one line, of an error whose text is two stack traces."""

import re

_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)*(\S.*)")
"""A worker's traceback, as text inside a Java exception; it ends with a line that begins with the error's class."""
_OWN = re.compile(r"aclog(?:\.\w+)+: (.*)")
_CAUSED_BY = re.compile(r"^Caused by: (?:[\w$]+\.)*([\w$]+(?:: .*)?)$", re.MULTILINE)
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(\w+)")
_CRASHED = "Python worker exited unexpectedly"
_SHOWN = 300

PYTHON_TO_SET = "set PYSPARK_PYTHON to a Python that has aclog on every machine (docs/spark.md: On a cluster)"


def own_error(text: str) -> str | None:
    """Return the message of the error that aclog raised in a worker, None if it was another error."""
    lines = _TRACEBACK.findall(text)
    own = _OWN.match(lines[-1]) if lines else None
    return own[1] if own else None


def cause(text: str) -> str:
    """Return the cause of a Spark error: that of Python if there is one, else the innermost of Java, else line one."""
    own = own_error(text)
    return own if own is not None else (_missing(text) or _last_line(text))[:_SHOWN]


def _missing(text: str) -> str | None:
    """Return what to do about a worker's Python that is absent, incomplete or gone."""
    if found := _NO_MODULE.search(text):
        return f"{found[0]}' in the Python of a worker: {PYTHON_TO_SET}"
    if found := _NO_PROGRAM.search(text):
        return f"cannot run {found[1]}, the Python of the workers: {PYTHON_TO_SET}"
    if _CRASHED in text and not _TRACEBACK.search(text):
        return "a Python worker crashed or was killed, most likely for lack of memory (docs/scale.md: Memory)"
    return None


def _last_line(text: str) -> str:
    lines = _TRACEBACK.findall(text) or _CAUSED_BY.findall(text)
    return str(lines[-1] if lines else text.split("\n", 1)[0])
