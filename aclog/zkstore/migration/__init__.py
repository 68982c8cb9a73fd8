"""The way out of ZooKeeper, and back: what a store holds as records, and what a log holds as nodes."""
