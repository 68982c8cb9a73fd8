"""Request handling that brokers and controllers share.

Begin with `acls.py`.
"""
