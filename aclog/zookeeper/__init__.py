"""ZooKeeper mode of Kafka up to 3.9: ACLs, SCRAM credentials and delegation tokens in znodes (KIP-11, KIP-290)."""
