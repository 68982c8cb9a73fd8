"""A metadata log as a directory of Kafka segment files: one writer, and readers in any process."""

from aclog.metalog.filelog.file_log import FileLog
from aclog.metalog.filelog.reader import FileLogReader, open_reader
from aclog.metalog.filelog.startup import open_log
from aclog.metalog.filelog.verify import Finding, verify

__all__ = ["FileLog", "FileLogReader", "Finding", "open_log", "open_reader", "verify"]
