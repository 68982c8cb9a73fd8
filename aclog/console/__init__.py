"""What serves over the web: the decision point. Questions from programs that do not speak Kafka."""
