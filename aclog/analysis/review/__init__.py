"""The review of a change: gained, lost and broken access, and whether it is acceptable. Pure: no I/O."""
