"""What accesses say about rules: the judge, the index of last use, suggestions. No Spark, and no sockets."""
