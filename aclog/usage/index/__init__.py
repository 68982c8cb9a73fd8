"""The index of last use: what accesses matched and needed of each life of an ACL, by day, in one SQLite database.

Begin with `usage_index.py` and `used.py`.
"""
