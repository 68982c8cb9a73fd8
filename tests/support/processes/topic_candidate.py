"""A process that stands for election: `topic_candidate TOPIC`; it says `elected` and `deposed`.

The client's properties come as a JSON object on stdin.
"""

import json
import os
import signal
import sys

from aclog.metalog.topiclog import Election, TopicSettings


def main() -> None:
    settings = TopicSettings(topic=sys.argv[1], properties=json.load(sys.stdin), replication_factor=1)
    with Election(settings, lambda: os.write(1, b"elected\n"), lambda: os.write(1, b"deposed\n")):
        signal.pause()


if __name__ == "__main__":
    main()
