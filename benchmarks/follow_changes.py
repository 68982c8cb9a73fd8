"""How many committed changes a second `aclog diff --follow` tells as JSON lines.

The log holds the rules, then batches of one change each: removals of random rules and additions of others like them,
LITERAL and PREFIXED. The command follows it from the first change on, as a process; the time is that between the line
of the first change and the line of the last.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from attrs import evolve

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.filelog.files import segment_name
from aclog.metalog.records import MetadataRecord, RemoveAccessControlEntryRecord
from benchmarks.report import Row
from benchmarks.shapes import million, record, with_id

TARGET = 2_000
_BATCH = 5_000
_FIRST, _LAST = "User:first", "User:last"


def run(rules: int, changes: int, scratch: Path) -> Iterator[Row]:
    """Follow a log with so many rules and changes."""
    begin = write_log(scratch, rules, changes)
    command = [sys.executable, "-m", "aclog", "diff", "--follow", "--log", str(scratch), "--as-of", str(begin)]
    lines = 0
    with subprocess.Popen([*command, "--format", "jsonl"], stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        started = 0.0
        for line in process.stdout:
            lines += 1
            who = json.loads(line)["principals"].get("in")
            if who == [_FIRST]:
                started = time.perf_counter()
            if who == [_LAST]:
                break
        seconds = time.perf_counter() - started
        process.terminate()
    yield Row(
        what=f"changes followed, {rules:,} rules",
        ours=changes / seconds,
        unit="/s",
        target=TARGET,
        more_is_better=True,
    )
    yield Row(what="lines for each change", ours=lines / changes, unit="")


def write_log(directory: Path, rules: int, changes: int) -> int:
    """Write the log; return the offset of the first change."""
    entries = [with_id(number, acl) for number, acl in enumerate(million(rules))]
    with (directory / segment_name(0)).open("wb") as file:
        for start in range(0, rules, _BATCH):
            file.write(_batch([record(entry) for entry in entries[start : start + _BATCH]], start))
        offset = rules
        for change in _changes([entry.acl for entry in entries], changes):
            file.write(_batch([change], offset))
            offset += 1
    return rules


def _changes(rules: list[StandardAcl], count: int) -> Iterator[MetadataRecord]:
    random = Random(1)
    removed = random.sample(range(len(rules)), count)
    for number in range(count):
        if 0 < number < count - 1 and number % 2:
            yield RemoveAccessControlEntryRecord(id=with_id(removed[number], rules[removed[number]]).id)
            continue
        who = {0: _FIRST, count - 1: _LAST}.get(number)
        like = rules[removed[number]]
        added = evolve(like, resource_name=f"{like.resource_name}.{number}")
        yield record(with_id(len(rules) + number, added if who is None else _marker(who)))


def _marker(principal: str) -> StandardAcl:
    """Return a rule that surely gives something, to one principal only."""
    return StandardAcl(
        resource_type=ResourceType.TOPIC,
        resource_name=principal,
        pattern_type=PatternType.LITERAL,
        principal=principal,
        host="*",
        operation=AclOperation.READ,
        permission_type=AclPermissionType.ALLOW,
    )


def _batch(records: list[MetadataRecord], offset: int) -> bytes:
    values = [encode_record(each) for each in records]
    return build_batch(values, base_offset=offset, leader_epoch=1, timestamp=1_000 + offset)
