"""What serves over the web: the console, and the decision point for proxies and programs.

Begin with `live.py` (following the source) and `connections.py` (budgets of connections).
"""
