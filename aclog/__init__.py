"""aclog: Apache Kafka's access control as an event-sourced system."""
