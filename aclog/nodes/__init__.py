"""Controller and broker: Kafka's wire protocol, listeners, security, and the observer of a KRaft quorum."""
