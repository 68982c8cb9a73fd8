"""`aclog migrate`: move ACLs, SCRAM credentials and tokens out of ZooKeeper, and back."""
