"""The console's views as values: a question, and the page that answers it. No HTML, and no I/O but the source's.

Begin with `page.py`, `states.py` and `views.py` (the list of views).
"""
