"""Controllers and brokers: nodes that serve Kafka's protocol from a log."""
