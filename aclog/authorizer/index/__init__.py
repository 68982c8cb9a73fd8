"""The index behind AclsImage: ACLs in columns, and the queries on them (docs/decisions/0003-acl-index.md).

Begin with `base.py` (the sorted columns), `acl_index.py` (base and overlay) and `scan_order.py` (what Kafka names).
"""
