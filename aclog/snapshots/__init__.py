"""State at an offset: image and delta, applier, publisher, checkpoints, recovery, moments in the past."""
