"""A client of Kafka's protocol: connections, the requests that commands send, and observers of a KRaft quorum.

Begin with `connection.py`, `requests.py` and `fetching.py` (an observer's Fetch).
"""
