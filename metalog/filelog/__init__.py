"""The embedded home of a metadata log: a directory of Kafka's segment files, one writer, readers in any process."""

from metalog.filelog.file_log import FileLog
from metalog.filelog.opening import open_log
from metalog.filelog.reader import FileLogReader, open_reader
from metalog.filelog.verify import Finding, verify

__all__ = ["FileLog", "FileLogReader", "Finding", "open_log", "open_reader", "verify"]
