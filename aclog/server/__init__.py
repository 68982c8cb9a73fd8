"""Controllers and brokers: nodes that serve Kafka's protocol from a log.

Begin with `node.py`.
"""
