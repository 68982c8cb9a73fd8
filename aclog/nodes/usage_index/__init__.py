"""The index of last use that a node keeps of its own decisions (aclog.usage.index)."""
