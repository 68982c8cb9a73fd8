"""State at an offset: image, delta, applier, publisher, checkpoints and image files, recovery, moments in the past."""
