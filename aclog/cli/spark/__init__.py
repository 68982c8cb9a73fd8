"""`aclog spark`: jobs over metadata logs and access logs.

Begin with `command.py`.
"""
