"""The index of last use: the accesses that matched and needed each life of an ACL, by day, in an SQLite database."""
