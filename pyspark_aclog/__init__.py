"""The entry point of the data source `aclog`: Spark imports modules named pyspark_* for their DefaultSource."""

from aclog.pipeline.source.data_source import AclogDataSource

__all__ = ["DefaultSource"]


class DefaultSource(AclogDataSource):
    """`spark.read.format("aclog")` without registration."""
