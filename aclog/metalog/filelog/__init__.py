"""A metadata log as a directory of Kafka segment files: one writer, and readers in any process.

Begin with `file_log.py`, `segments.py` and `committed_mark.py`.
"""

from aclog.metalog.filelog.file_log import FileLog, open_log
from aclog.metalog.filelog.verify import FileLogReader, Finding, open_reader, verify

__all__ = ["FileLog", "FileLogReader", "Finding", "open_log", "open_reader", "verify"]
