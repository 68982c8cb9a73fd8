"""A node's log directories: formatting, meta.properties, feature levels."""
