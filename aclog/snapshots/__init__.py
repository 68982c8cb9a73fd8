"""State at an offset: image, delta, applier, publisher, checkpoints and image files, recovery, moments in the past.

Begin with `image.py`, `applier.py` and `publisher.py`.
"""
