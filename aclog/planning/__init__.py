"""Planning: plans of changes, what a source of rules owns, and how a plan is applied.

Begin with `planner.py`, `plan.py` and `applying.py`; `journal.py` records what a source owns.
"""
