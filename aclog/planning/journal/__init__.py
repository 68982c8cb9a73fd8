"""The journal of a source of rules: what it has applied, and so what it owns."""
