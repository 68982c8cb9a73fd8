"""Imports killed at every call that changes a file: all of the file or nothing is seen, and the next import does it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from aclog.metalog.filelog.files import list_segments
from aclog.metalog.filelog.verify import verify
from aclog.snapshots.publisher import recover
from tests.scenarios.migration.running import DIED, Dying
from tests.support.builders.acls import acl_row
from tests.support.cli.command import aclog
from tests.support.nodes.node_properties import COMBINED

pytestmark = pytest.mark.slow(20)
MANY = 500
"""Of which about 200 fit into a batch there."""


def formatted(home: Path) -> Path:
    data = home / "data"
    (home / "server.properties").write_text(
        "".join(f"{key}={value}\n" for key, value in (COMBINED | {"log.dirs": str(data)}).items()), encoding="utf-8"
    )
    scram = "SCRAM-SHA-256=[name=admin,iterations=4096,password=admin-secret]"
    flags = ("--standalone", "--cluster-id", "4L6g3nShT-eMCtK--X86sw", "--add-scram", scram)
    aclog("format", home / "server.properties", *flags).ok()
    return data / "__cluster_metadata-0"


def existing(home: Path) -> Path:
    log = home / "data" / "log"
    log.parent.mkdir()
    aclog("import", "-", "--log", log, stdin=json.dumps(acl_row("before")).encode()).ok()
    return log


def new(home: Path) -> Path:
    (home / "data").mkdir()
    return home / "data" / "log"


def seen(log: Path) -> int:
    """How many of the imported ACLs a reader sees."""
    if not log.is_dir() or not list_segments(log):
        return 0
    return sum(rule.acl.resource_name.startswith("row-") for rule in recover(log).image.acls)


@pytest.mark.parametrize("make", [new, existing, formatted])
def test_killed_anywhere(make: Callable[[Path], Path], tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    rows.write_text("".join(json.dumps(acl_row(f"row-{number}")) + "\n" for number in range(MANY)), encoding="utf-8")
    log = make(tmp_path)
    clean = tmp_path / "clean"
    shutil.copytree(log.parent, clean)
    number, found = 0, set()
    with Dying() as dying:
        while True:
            code = dying.run(number, "import", rows, "--log", log, "--force")
            assert code in {0, DIED}, f"call {number}"
            found.add(seen(log))
            assert aclog("import", rows, "--log", log, "--force").code == 0, f"call {number}"
            assert seen(log) == MANY, f"call {number}"
            assert not list(verify(log))
            if make is formatted:
                image = recover(log).image
                assert (len(image.scram), image.features.level("metadata.version")) == (1, 30), f"call {number}"
            if code == 0:
                break
            number += 1
            shutil.rmtree(log.parent)
            shutil.copytree(clean, log.parent)
    assert number > 8
    assert found == {0, MANY}
