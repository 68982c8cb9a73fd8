"""Controllers: the quorum's voters and the active controller, over a log in files or in a topic.

Begin with `quorum_controller.py`, `controller_server.py` and `topic_controller.py`.
"""
