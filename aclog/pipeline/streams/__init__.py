"""Streams of accesses: decisions and tables that grow, each access once.

Begin with `decisions.py` and `batches.py`.
"""
