"""Arrow columns of text and of ACLs, and batches of them."""
