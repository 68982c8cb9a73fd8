"""The use of ACLs by accesses: use and need of each, the index of last use, suggestions. No Spark, and no sockets.

Begin with `counting.py` and `judging.py`; `unused.py` decides which rules are not judged.
"""
