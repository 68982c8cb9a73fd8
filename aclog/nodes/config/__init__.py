"""A node's and a client's configuration: properties files, read and checked."""
