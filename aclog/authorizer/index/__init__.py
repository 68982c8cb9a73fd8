"""The index behind AclsImage: ACLs in columns, and the queries on them (docs/decisions/0003-acl-index.md)."""
