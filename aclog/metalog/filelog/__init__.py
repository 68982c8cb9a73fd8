"""The embedded home of a metadata log: a directory of Kafka's segment files, one writer, readers in any process."""

from aclog.metalog.filelog.file_log import FileLog
from aclog.metalog.filelog.reader import FileLogReader, open_reader
from aclog.metalog.filelog.startup import open_log
from aclog.metalog.filelog.verify import Finding, verify

__all__ = ["FileLog", "FileLogReader", "Finding", "open_log", "open_reader", "verify"]
