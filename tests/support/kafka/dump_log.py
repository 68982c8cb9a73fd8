"""The fixtures' metadata files, and what Kafka's own DumpLogSegments printed of them."""

import gzip
import json
import re
from functools import cache
from pathlib import Path

from attrs import frozen

DATA = Path(__file__).parents[2] / "data"
FIXTURES = ("kafka-4.3.1-small", "kafka-4.3.1-churn")
METADATA_FILES = sorted(
    path
    for fixture in FIXTURES
    for pattern in ("__cluster_metadata-0/*.log", "__cluster_metadata-0/*.checkpoint", "bootstrap.checkpoint")
    for path in (DATA / fixture).glob(pattern)
)
"""Every segment and checkpoint that the real Kafkas wrote."""

_BATCH = re.compile(
    r"baseOffset: (?P<base_offset>\d+) lastOffset: (?P<last_offset>\d+) count: (?P<record_count>\d+) baseSequence: "
    r"(?P<base_sequence>-?\d+) lastSequence: -1 producerId: (?P<producer_id>-?\d+) producerEpoch: "
    r"(?P<producer_epoch>-?\d+) partitionLeaderEpoch: (?P<leader_epoch>\d+) isTransactional: false isControl: "
    r"(?P<is_control>\w+) deleteHorizonMs: OptionalLong.empty position: (?P<position>\d+) CreateTime: "
    r"(?P<max_timestamp>\d+) size: (?P<size>\d+) magic: (?P<magic>\d+) compresscodec: none crc: (?P<crc>\d+) "
    r"isvalid: true"
)
_RECORD = re.compile(
    r"\| offset: (?P<offset>\d+) CreateTime: (?P<timestamp>\d+) keySize: (?P<key_size>-?\d+) valueSize: "
    r"(?P<value_size>\d+) sequence: -1 headerKeys: \[\] (?P<kind>\w+):? (?P<json>\{.*\}|LEADER_CHANGE\(2\))"
)


@frozen(kw_only=True)
class DumpedRecord:
    """`kind` is `payload` for a data record, else the control record's name; `json` what stands after it."""

    offset: int
    timestamp: int
    key_size: int
    value_size: int
    kind: str
    json: dict


@frozen(kw_only=True)
class DumpedBatch:
    """The numbers of a batch's line, by our names, and its records."""

    fields: dict[str, int]
    records: list[DumpedRecord]


@cache
def dumped(path: Path) -> list[DumpedBatch] | None:
    """What the tool printed of a file, None for a file it was not run on (bootstrap.checkpoint)."""
    return _dump(path.parent.parent.name).get(path.name) if path.parent.name == "__cluster_metadata-0" else None


def was_dumped(path: Path) -> bool:
    """Whether the tool was run on a file; told without parsing, since every worker asks when it collects its tests."""
    return path.parent.name == "__cluster_metadata-0" and f"Dumping {path.name}\n" in _text(path.parent.parent.name)


@cache
def _dump(fixture: str) -> dict[str, list[DumpedBatch]]:
    return parse(_text(fixture))


@cache
def _text(fixture: str) -> str:
    plain = DATA / fixture / "expected" / "dump-log.txt"
    return plain.read_text() if plain.exists() else gzip.decompress(Path(f"{plain}.gz").read_bytes()).decode()


def parse(text: str) -> dict[str, list[DumpedBatch]]:
    """The batches of each file (as `--files` named it) in what DumpLogSegments printed."""
    files: dict[str, list[DumpedBatch]] = {}
    for line in text.split("\n"):
        if line.startswith("Dumping "):
            batches = files[line.split()[1]] = []
        elif line.startswith("baseOffset"):
            batches.append(DumpedBatch(fields=_numbers(_BATCH.fullmatch(line).groupdict()), records=[]))
        elif line.startswith("|"):
            batches[-1].records.append(_record(_RECORD.fullmatch(line).groupdict()))
    return files


def _record(groups: dict[str, str]) -> DumpedRecord:
    names = ("offset", "timestamp", "key_size", "value_size")
    numbers = {name: int(groups[name]) for name in names}
    if groups["kind"] == "controlType":  # Kafka 3.9 prints no more of a LeaderChange
        return DumpedRecord(kind="LeaderChange", json={}, **numbers)
    return DumpedRecord(kind=groups["kind"], json=json.loads(groups["json"]), **numbers)


def _numbers(groups: dict[str, str]) -> dict[str, int]:
    return {name: text == "true" if name == "is_control" else int(text) for name, text in groups.items()}
