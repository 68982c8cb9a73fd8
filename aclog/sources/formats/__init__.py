"""GitOps files: rules as other tools for Kafka keep them in a repository, each with its file and line.

Begin with `reading.py` and `rule.py`.
"""
