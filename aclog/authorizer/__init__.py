"""What you may do: ACLs, resource patterns, the index, the decision and its explanation, ACL control."""
