"""Authorization: ACLs, the index, decisions and their explanations, the audit log, ACL control (KIP-11, KIP-801).

Begin with `acl.py` (values), `acls_image.py` (all ACLs at one offset) and `standard.py` (StandardAuthorizer).
"""
