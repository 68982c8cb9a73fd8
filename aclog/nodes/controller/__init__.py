"""The active controller of a one-voter quorum: the single writer of the log."""
