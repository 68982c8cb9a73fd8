"""The Spark data source `aclog`: a metadata log (directory, checkpoints or topic) as a table, batch and stream.

Begin with `data_source.py` and `rows.py`.
"""

import os
import sys

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from aclog.pipeline.source.data_source import AclogDataSource

__all__ = ["AclogDataSource", "register"]


def register(spark: SparkSession) -> None:
    """Register `format("aclog")` with a session.

    Unnecessary if the Python of PYSPARK_PYTHON can import pyspark_aclog, which Spark looks for. Without PYSPARK_PYTHON
    Spark runs the first `python3` of the path, which may lack aclog: on one machine, this Python is used instead.
    """
    classic = not type(spark).__module__.startswith("pyspark.sql.connect.")
    if classic and "PYSPARK_PYTHON" not in os.environ and str(spark.sparkContext.master).startswith("local"):
        spark.sparkContext.pythonExec = sys.executable
    try:
        spark.dataSource.register(AclogDataSource)
    except AnalysisException as error:
        # before 4.1 Spark does not register again what it has found by itself
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
