"""Targets: where a change of ACLs is written: a log directory, a cluster, a ZooKeeper.

Begin with `opening.py`, `log.py` and `cluster.py`.
"""
