"""State files of kafka-gitops, with the rules that it plans for them."""

from aclog.sources.formats.kafka_gitops.reader import claims, read

__all__ = ["claims", "read"]
