"""The engine of exact differences: the scope in which two policies may differ, and its exploration."""
