"""The engine: where two policies may differ, and what differs there.

Begin with `exploration.py`.
"""
