"""The measured processes of benchmarks.open_image: `python -m benchmarks.open_process share|node PATH`.

Each prints lines of JSON.
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import NoReturn

from aclog.config.server_properties import load_config
from aclog.protocol.responses import BROKER_APIS, CONTROLLER_APIS
from aclog.server.network.dispatch import Dispatcher
from aclog.server.node import Node
from aclog.server.storage import require_formatted
from aclog.server.telemetry import Metrics
from aclog.snapshots.checkpoints import read_state
from benchmarks import shapes

DECISIONS = 1_000


def share(checkpoint: Path) -> None:
    """Open the state and decide, then tell how many MB that added.

    Each step waits for a line on stdin, so that the pages are counted while the other processes have them, too.
    """
    before = _memory()
    sys.stdin.readline()
    acls = read_state(checkpoint).acls
    for number, acl in enumerate(shapes.million(DECISIONS)):
        acls.verdict(f"User:service-{number}", "10.0.0.1", 3, 2, acl.resource_name)
    _say(opened=len(acls))
    sys.stdin.readline()
    after = _memory()
    _say(**{name: after[name] - before[name] for name in after})


def _memory() -> dict[str, float]:
    """Return the MB that the kernel counts as this process's alone, as of no file, and as its share of everything."""
    found = _kilobytes("/proc/self/smaps_rollup")
    private = found["Private_Clean"] + found["Private_Dirty"]
    return {"private": private / 1024, "anonymous": found["Pss_Anon"] / 1024, "pss": found["Pss"] / 1024}


def _kilobytes(path: str) -> dict[str, int]:
    """Return the lines `name: number kB` of a file of /proc."""
    lines = (line.split() for line in Path(path).read_text().splitlines() if line.endswith(" kB"))
    return {name.removesuffix(":"): int(number) for name, number, _ in lines}


async def ready(properties: Path) -> dict[str, float]:
    """Start a node, and return the seconds until its listeners are open, its rules, and its peak memory in MB."""
    config = load_config(properties)
    meta = require_formatted(config)
    _import_messages()
    wall, cpu = time.perf_counter(), time.process_time()
    node, stop = Node(config=config, meta=meta), asyncio.Event()
    running, serving = asyncio.create_task(node.run(stop)), asyncio.create_task(node.serving.wait())
    await asyncio.wait({running, serving}, return_when=asyncio.FIRST_COMPLETED)
    found = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    found |= {"rules": len(node.publisher.current.acls), "mb": _kilobytes("/proc/self/status")["VmHWM"] / 1024}
    serving.cancel()
    stop.set()
    await running
    return found


def _import_messages() -> None:
    """Import the messages that a node imports when it is made: what is measured begins after all imports."""
    for apis in (BROKER_APIS, CONTROLLER_APIS):
        Dispatcher(handlers={api.api_key: _unused for api in apis}, apis=apis, metrics=Metrics())


def _unused(_: object) -> NoReturn:
    raise AssertionError("nobody asks")


def _say(**figures: object) -> None:
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    what, where = sys.argv[1], Path(sys.argv[2])
    if what == "share":
        share(where)
    else:
        _say(**asyncio.run(ready(where)))
