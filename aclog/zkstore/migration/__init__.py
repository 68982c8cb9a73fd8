"""Migration between ZooKeeper and the metadata log: reading, comparing, following and writing access state."""
