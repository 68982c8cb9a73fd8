"""A ZooKeeper client: session, reads, transactions, retries."""
