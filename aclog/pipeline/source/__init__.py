"""The Spark data source `aclog`: a metadata log (directory, checkpoints or topic) as a table, batch and stream."""

from pyspark.sql import SparkSession

from aclog.pipeline.source.data_source import AclogDataSource

__all__ = ["AclogDataSource", "register"]


def register(spark: SparkSession) -> None:
    """Register `format("aclog")` with a session; unnecessary if pyspark_aclog is importable, which Spark looks for."""
    spark.dataSource.register(AclogDataSource)
