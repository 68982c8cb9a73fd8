"""Brokers: serve reads from the replayed log and forward writes to the active controller.

Begin with `lifecycle.py` and `apis.py`.
"""
