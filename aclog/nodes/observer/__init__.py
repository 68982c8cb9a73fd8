"""Observers of a KRaft quorum, ours or Kafka's: fetching its log, replaying it, mirroring it."""
