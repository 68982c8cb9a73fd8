"""Clients of one viewer that ask a console for states of the past, as fast as they are answered, until stdin ends.

    python -m benchmarks.costly_load --port N --cookie C --clients 8 --rules N

Prints `ready` when all are connected, and at the end how many answers had which status, as JSON.
"""

import argparse
import json
import random
import sys
import threading
from collections import Counter
from http.client import HTTPConnection, HTTPException

_PATIENCE_S = 300


def _ask(port: int, cookie: str, rules: int, seed: int, ending: threading.Event, found: Counter[int]) -> None:
    draw = random.Random(seed)
    connection = HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)
    while not ending.is_set():
        try:
            connection.request("GET", f"/rules?as_of={draw.randrange(1, rules)}", headers={"Cookie": cookie})
            reply = connection.getresponse()
            reply.read()
            found[reply.status] += 1
        except (OSError, HTTPException):
            found[0] += 1
            connection.close()


def main() -> None:
    """Ask."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--cookie", required=True)
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--rules", type=int, required=True)
    arguments = parser.parse_args()
    ending, found = threading.Event(), Counter[int]()
    threads = [
        threading.Thread(
            target=_ask, args=(arguments.port, arguments.cookie, arguments.rules, seed, ending, found), daemon=True
        )
        for seed in range(arguments.clients)
    ]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    sys.stdin.read()
    ending.set()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
