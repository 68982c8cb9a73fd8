"""Client connections to Kafka-speaking servers, ours or Kafka's, and the requests that commands send."""
