"""Registers the data source `aclog`: Spark imports every top-level module of this form of name, and takes the class."""

from aclog.pipeline.source.data_source import AclogDataSource

__all__ = ["DefaultSource"]


class DefaultSource(AclogDataSource):
    """`spark.read.format("aclog")`, without anything registered."""
