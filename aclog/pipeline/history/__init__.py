"""The history of ACLs: every ACL of a log with the interval in which it was in force."""
