"""The index behind AclsImage: ACLs in columns, and what is asked of them (docs/decisions/0003-acl-index.md)."""
