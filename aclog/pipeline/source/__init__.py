"""The data source `aclog`: a metadata log (directory, checkpoints or topic) as a table of Spark, batch and stream."""

from pyspark.sql import SparkSession

from aclog.pipeline.source.data_source import AclogDataSource

__all__ = ["AclogDataSource", "register"]


def register(spark: SparkSession) -> None:
    """Make `format("aclog")` known to a session. One whose workers find pyspark_aclog knows it already."""
    spark.dataSource.register(AclogDataSource)
