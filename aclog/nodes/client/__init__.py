"""Connections to Kafka-speaking servers, ours or Kafka's."""
