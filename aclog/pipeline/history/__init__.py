"""The history of ACLs: each with the interval in which it was in force; when something was allowed.

Begin with `intervals.py`.
"""
