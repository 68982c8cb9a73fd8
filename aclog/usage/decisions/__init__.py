"""Authorization in bulk, by all ACLs that were ever in force: pure, run by Spark's workers.

Begin with `bulk_authorizer.py` and `intervals.py`.
"""
