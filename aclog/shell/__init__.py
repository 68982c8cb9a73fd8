"""The metadata shell: an image as a tree of files, commands on it, and a prompt (KIP-801, kafka-metadata-shell).

Begin with `tree.py` and `session.py`.
"""
