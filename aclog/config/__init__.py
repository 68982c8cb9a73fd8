"""The configuration of a node and of a client: properties files, read and checked.

Begin with `server_properties.py` (the keys) and `node_config.py` (what a node makes of them).
"""
