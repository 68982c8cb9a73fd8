"""Who may see what in the console: logins, sessions, what guards every request, and what the rules let a viewer see.

Begin with `guard.py` and `sessions.py`.
"""
