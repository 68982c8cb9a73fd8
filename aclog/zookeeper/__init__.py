"""ZooKeeper mode of Kafka up to 3.9: ACLs, SCRAM credentials and delegation tokens in znodes (KIP-11, KIP-290).

Begin with `acl_store.py`, `authorizer.py` and `migration.py`.
"""
