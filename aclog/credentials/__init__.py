"""Authentication data as values: SCRAM credentials and delegation tokens, and the requests that change them.

Begin with `scram.py` and `tokens.py`.
"""
