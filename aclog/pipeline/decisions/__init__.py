"""Deciding accesses in bulk: pure code over Arrow and numpy columns, which Spark's workers run."""
