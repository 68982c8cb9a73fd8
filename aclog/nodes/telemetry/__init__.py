"""What an operator sees of a node: metrics, health, logs."""
