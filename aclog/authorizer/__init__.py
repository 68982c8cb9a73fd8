"""Authorization: ACLs, the index, decisions and their explanations, the audit log, ACL control (KIP-11, KIP-801)."""
