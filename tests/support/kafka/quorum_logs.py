"""What a test Kafka leaves behind when a test fails: its output, its configuration, its data."""

import contextlib
import re
import shutil
import time
from pathlib import Path

from tests.support.kafka.jvm import ROOT

DIRECTORY = ROOT / "build" / "kafka-logs"


def keep(home: Path, name: str) -> Path:
    """Copy `home` into a directory of its own under build/kafka-logs, whose name begins with `name`; that directory.

    Nodes may be running: a file that goes away meanwhile is left out, and so are indexes, which are large and empty.
    """
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-")
    target = DIRECTORY / f"{plain}-{time.strftime('%Y%m%dT%H%M%S')}-{time.time_ns() % 10**6:06}"
    with contextlib.suppress(shutil.Error):  # which tells of the files that could not be copied; the others have been
        shutil.copytree(home, target, ignore=shutil.ignore_patterns("*.index", "*.timeindex"))
    return target
