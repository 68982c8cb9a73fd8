"""A follower of a KRaft quorum, ours or Kafka's."""
