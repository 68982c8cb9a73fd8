"""ZooKeeper client on kazoo: settings, sessions, reads, watches and transactions (kafka.zk.KafkaZkClient)."""
