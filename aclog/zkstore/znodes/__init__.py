"""Paths and contents of Kafka's znodes (kafka.zk.ZkData): encoding and decoding, without I/O."""
