"""A process that writes to a topic log for as long as it can: `topic_writer TOPIC NODE_ID`.

The client's properties come as a JSON object on stdin. It says `open EPOCH`, then `ack OFFSET VALUE` for each
record that is acknowledged, and last `failed KIND`, where it cannot go on.
"""

import json
import os
import sys
import threading
from itertools import count

from aclog.metalog.errors import LogError
from aclog.metalog.topiclog import TopicSettings, open_topic_log

APPENDERS = 4


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def append_forever(log, name: str) -> None:
    for number in count():
        values = [f"{name}-{number}-{part}".encode() for part in range(1 + number % 3)]
        try:
            appended = log.append(values, timestamp=1).result()
        except LogError as error:
            say(f"failed {type(error).__name__}")
            return
        for part, value in enumerate(values):
            say(f"ack {appended.base_offset + part} {value.decode()}")


def main() -> None:
    topic, node_id = sys.argv[1], int(sys.argv[2])
    settings = TopicSettings(topic=topic, properties=json.load(sys.stdin), replication_factor=1)
    with open_topic_log(settings, node_id=node_id) as log:
        say(f"open {log.leader_epoch}")
        threads = [
            threading.Thread(target=append_forever, args=(log, f"{node_id}-{number}")) for number in range(APPENDERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
