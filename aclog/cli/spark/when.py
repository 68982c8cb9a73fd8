"""`aclog spark when`: since when, and until when, something was allowed, from a log of any size."""

from pathlib import Path

from pyspark.sql import SparkSession

from aclog.analysis.answers.timeline import Question
from aclog.authorizer.settings import Settings
from aclog.cli.flags.output import Output
from aclog.cli.interval_list import print_intervals
from aclog.pipeline.history.when import begin_and_intervals


def when_command(spark: SparkSession, log: Path, question: Question, settings: Settings, output: Output) -> None:
    """Print the intervals of a log directory in which the answer was yes, as `aclog when` does.

    Raises:
        LogError: there is no log, or it cannot be read.
        CheckpointError: the log does not begin at offset 0, and no complete checkpoint reaches its start.
        DecodeError: damage; a ReplayError if records contradict each other.
        PySparkException, Py4JJavaError: a job failed; its text holds the error of a segment that cannot be read.

    """
    begin, found = begin_and_intervals(spark, log, question, settings)
    print_intervals(found, output, begin=begin)
