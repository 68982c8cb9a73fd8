"""The tree of a metadata image, its commands, and the prompt."""
