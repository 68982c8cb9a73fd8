"""A metadata log as a directory of Kafka segment files: one writer, and readers in any process.

Begin with `file_log.py`, `segments.py` and `committed_mark.py`.
"""

# Each name is imported when it is first used: a command that reads a checkpoint needs the names of files alone.

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aclog.metalog.filelog.file_log import FileLog, open_log
    from aclog.metalog.filelog.verify import FileLogReader, Finding, open_reader

    __all__ = ["FileLog", "FileLogReader", "Finding", "open_log", "open_reader"]

_HOME_OF = {
    "FileLog": "aclog.metalog.filelog.file_log",
    "FileLogReader": "aclog.metalog.filelog.verify",
    "Finding": "aclog.metalog.filelog.verify",
    "open_log": "aclog.metalog.filelog.file_log",
    "open_reader": "aclog.metalog.filelog.verify",
}
"""The public names, each with the module that defines it."""


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value
