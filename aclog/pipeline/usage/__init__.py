"""Usage of ACLs: which of them an access log needs."""
