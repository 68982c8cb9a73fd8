"""The older world: rules in ZooKeeper, as KIP-11 and KIP-290 laid them out and Kafka up to 3.9 keeps them."""
