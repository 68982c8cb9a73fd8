"""Kafka Security Manager's CSV and YAML, the CSV that Conduktor exports in its format, and that of Kafka UI."""

from aclog.sources.formats.ksm.reader import claims, read

__all__ = ["claims", "read"]
