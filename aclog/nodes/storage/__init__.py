"""Log directories: formatting, meta.properties, feature levels."""
