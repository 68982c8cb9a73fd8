"""The configuration of a node and of a client: properties files, read and checked."""
