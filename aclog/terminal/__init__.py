"""Output for people: notices, progress bars, tables, timestamps.

Begin with `output.py` and `tables.py`.
"""
