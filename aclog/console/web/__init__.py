"""The console as a web application: pages as HTML, JSON and CSV, and what keeps them live.

Begin with `app.py` and `rendering.py`.
"""
