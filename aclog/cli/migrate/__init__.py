"""`aclog migrate`: migration of ACLs, SCRAM credentials and delegation tokens from ZooKeeper, and back."""
