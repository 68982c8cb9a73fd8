"""A review of a change: what it grants, revokes and breaks, and whether that is acceptable; pure.

Begin with `review.py`, which also has the comment on a pull request.
"""
