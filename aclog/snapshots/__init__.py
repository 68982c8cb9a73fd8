"""State at an offset: the image and its delta, the applier, the publisher, checkpoints and recovery."""
