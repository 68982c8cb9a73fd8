"""State sources: the places from which commands and the library read a state.

Begin with `choice.py` (which source a command line names), `logs.py` and `live.py` (running clusters).
"""
