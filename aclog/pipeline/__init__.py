"""Metadata logs and access logs of any size on Spark: tables, history, decisions and usage.

Begin with `authorize.py` and `session.py`.
"""
