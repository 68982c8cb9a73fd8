"""The authorizer of Kafka up to 3.9, whose ACLs are in ZooKeeper (kafka.security.authorizer.AclAuthorizer)."""
