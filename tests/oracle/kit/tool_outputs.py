"""The tools of a release on aclog's node and files, beside what those of 4.3.1 print.

kafka-acls and kafka-configs: the command lines of tests/support/kafka/commands.py, whose output on a Kafka 4.3.1 is
recorded. kafka-features, kafka-metadata-quorum and kafka-dump-log: what aclog knows of its own node and files.
"""

import json
import re
from collections.abc import Iterator, Sequence
from difflib import ndiff
from itertools import zip_longest
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from aclog.authorizer.settings import Generation
from aclog.metalog.batches import iter_batches
from aclog.metalog.codec import decode_values
from aclog.metalog.control_records import decode_control_batch
from aclog.metalog.filelog import open_log
from aclog.metalog.filelog.files import list_segments
from aclog.metalog.text_forms import control_json, record_json
from aclog.server.feature_levels import KRAFT_VERSION
from aclog.shell.tree import metadata_version_name
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.image import METADATA_VERSION
from aclog.snapshots.publisher import recover
from tests.oracle.kit.assumptions import assumed_generation, default_features, node_settings, supported_features
from tests.oracle.kit.record_schemas import interpreted_values
from tests.oracle.kit.values import Difference, Outcome
from tests.support.kafka.dump_log import DumpedBatch, parse
from tests.support.kafka.jvm import release_of
from tests.support.kafka.release_facts import ReleaseFacts
from tests.support.kafka.tools import Tools, client_properties, neutral, recorded
from tests.support.kafka.warm_jvms import Printed, ToolPipe
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.server_properties import CLUSTER_ID, Ports, server_properties

CHECK = "tools"
_FEATURES = "org.apache.kafka.tools.FeatureCommand"
_QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
_MASKED = (
    (re.compile(r"(Epoch:|HighWatermark:|LagTimeMs:|MaxFollowerLag:)(\s+)-?[0-9]+"), r"\1 N"),
    (re.compile(r'("directoryId": )"[^"]+"'), r"\1ID"),
)
STATUS = f"""\
ClusterId: {CLUSTER_ID}
LeaderId: 1
LeaderEpoch: N
HighWatermark: N
MaxFollowerLag: N
MaxFollowerLagTimeMs: N
CurrentVoters: [{{"id": 1, "directoryId": ID, "endpoints": ["CONTROLLER://CONTROLLER"]}}]
CurrentObservers: []
"""
"""What kafka-metadata-quorum describe --status of 4.3.1 prints of a node of aclog's."""
REPLICATION = "NodeId DirectoryId LogEndOffset Lag LastFetchTimestamp LastCaughtUpTimestamp Status"
"""The head of what describe --replication prints."""
_REWORDED = (((4, 4), re.compile(r"(Unexpected config names: )Set\((.*)\)$"), r"\1\2"),)
"""What the tools themselves say otherwise since a release, whatever node they ask: its lines, and how they read now."""
_TIMESTAMP = 1_700_000_000_000


def check_tools(facts: ReleaseFacts, *, seed: int) -> Outcome:
    """Run the tools of a release."""
    generation = assumed_generation(facts.version)
    with TemporaryDirectory(prefix="aclog-oracle-") as scratch:
        pipe = ToolPipe(facts.version)
        home, ports = Path(scratch), Ports.free()
        properties = server_properties(ports, **node_settings(generation))
        with AclogNode(home / "node", ports, properties).format() as node:
            expected, printed = recorded(), Tools(pipe, ports, home).run()
            found = [
                *_commands(facts.version, expected, printed),
                *_features(pipe, ports, home, generation),
                *_quorum(pipe, ports, home),
            ]
        files = _files(node.log_directory, home, facts, Random(seed))
        dumped = list(_dumps(facts.version, files))
    compared = len(expected) + 3 + sum(batches for batches, _ in dumped)
    found += [difference for _, differences in dumped for difference in differences]
    notes = (f"{len(expected)} command lines, {len(files)} files",)
    return Outcome(check=CHECK, compared=compared, differences=tuple(found), notes=notes)


def _commands(
    version: str, expected: Sequence[dict[str, Any]], printed: Sequence[dict[str, Any]]
) -> Iterator[Difference]:
    for row, ours in zip(expected, printed, strict=True):
        theirs = {**row, "out": _reworded(version, row["out"]), "err": _reworded(version, row["err"])}
        for key in ("command", "code", "out", "err"):
            if theirs[key] != ours[key]:
                kafka, aclog = (json.dumps(side[key], ensure_ascii=False) for side in (theirs, ours))
                subject = f"{ours['command']} ({ours['to']}), {key}"
                yield Difference(subject=subject, kafka=f"4.3.1 on Kafka: {kafka}", aclog=f"on aclog: {aclog}")


def _reworded(version: str, lines: Sequence[str]) -> list[str]:
    found = list(lines)
    for since, pattern, words in _REWORDED:
        if release_of(version) >= since:
            found = [pattern.sub(words, line) for line in found]
    return found


def _at(ports: Ports, home: Path) -> list[str]:
    config = str(client_properties(home, "admin"))
    return ["--bootstrap-controller", f"localhost:{ports.controller}", "--command-config", config]


def _features(pipe: ToolPipe, ports: Ports, home: Path, generation: Generation) -> Iterator[Difference]:
    """Every feature with its supported and finalized levels."""
    finalized = {**default_features(generation), KRAFT_VERSION: 1}
    expected = [
        f"Feature: {name} SupportedMinVersion: {_level(name, least)} SupportedMaxVersion: {_level(name, most)} "
        f"FinalizedVersionLevel: {_level(name, finalized.get(name, 0))} Epoch: N"
        for name, (least, most) in sorted(supported_features(generation).items())
    ]
    printed = pipe.run(_FEATURES, [*_at(ports, home), "describe"])
    yield from _text("kafka-features describe", "\n".join(expected), printed, ports)


def _level(feature: str, level: int) -> str:
    return str((metadata_version_name(level) if feature == METADATA_VERSION else None) or level)


def _quorum(pipe: ToolPipe, ports: Ports, home: Path) -> Iterator[Difference]:
    status = pipe.run(_QUORUM, [*_at(ports, home), "describe", "--status"])
    yield from _text("kafka-metadata-quorum describe --status", STATUS, status, ports)
    replication = pipe.run(_QUORUM, [*_at(ports, home), "describe", "--replication"])
    head = Printed(code=replication.code, out=replication.out.partition("\n")[0], err=replication.err)
    yield from _text("kafka-metadata-quorum describe --replication, head", REPLICATION, head, ports)


def _text(command: str, expected: str, printed: Printed, ports: Ports) -> Iterator[Difference]:
    """Compare texts without numbers that change, and with single blanks."""
    text = neutral(printed.out, ports)
    for pattern, replacement in _MASKED:
        text = pattern.sub(replacement, text)
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    wanted = expected.splitlines()
    if printed.code or lines != wanted:
        changes = [line for line in ndiff(wanted, lines) if line[0] in "+-"]
        aclog = f"exit code {printed.code}, {printed.err.strip() or 'no error'}; {' | '.join(changes)}"
        yield Difference(subject=command, kafka="the text of 4.3.1 (-)", aclog=aclog)


# --- kafka-dump-log -----------------------------------------------------------------------------------------------


def _files(log_directory: Path, home: Path, facts: ReleaseFacts, random: Random) -> list[Path]:
    """What the node wrote, a checkpoint of it, and a log with every record that both interpret."""
    (home / "checkpoint").mkdir()
    checkpoint = write_checkpoint(recover(log_directory).image, home / "checkpoint")
    directory = home / "records"
    log = open_log(directory, create=True, timestamp=_TIMESTAMP)
    for number, value in enumerate(interpreted_values(facts, random), 1):
        log.append([value], timestamp=_TIMESTAMP + number).result()
    log.close()
    return [segment.path for each in (log_directory, directory) for segment in list_segments(each)] + [checkpoint]


def _dumps(version: str, files: Sequence[Path]) -> Iterator[tuple[int, list[Difference]]]:
    """The number of batches of each file, and what the tool prints of it otherwise than we read it."""
    main = f"{'org.apache.kafka' if release_of(version) >= (4, 2) else 'kafka'}.tools.DumpLogSegments"
    # In a JVM of its own: what is in Scala prints to the stream that was there when the first tool ran.
    printed = ToolPipe(version).run(main, ["--cluster-metadata-decoder", "--files", ",".join(map(str, files))])
    sections = {section.partition("\n")[0]: section for section in printed.out.split("Dumping ")[1:]}
    for path in files:
        subject = f"kafka-dump-log of {path.parent.name}/{path.name}"
        data, section = path.read_bytes(), sections.get(str(path), "")
        batches = list(iter_batches(data))
        try:
            dumped = parse(f"Dumping {section}")[str(path)]
        except (AttributeError, IndexError, KeyError, ValueError):
            lines = [line for line in section.splitlines() if "Error" in line] or section.splitlines()
            kafka = f"exit code {printed.code}: {lines[0] if lines else printed.err[-2000:]}"
            yield len(batches), [Difference(subject=subject, kafka=kafka, aclog="the form that 4.3.1 prints")]
            continue
        ours = [_batch(data, position, header) for position, header in batches]
        theirs = [_dumped(batch, our) for batch, our in zip_longest(dumped, ours) if batch is not None]
        found = [
            Difference(subject=f"{subject}, batch {number}", kafka=str(their), aclog=str(our))
            for number, (their, our) in enumerate(zip(theirs, ours, strict=False))
            if their != our
        ]
        if len(theirs) != len(ours):
            found.append(Difference(subject=f"{subject}, batches", kafka=str(len(theirs)), aclog=str(len(ours))))
        yield len(batches), found


def _batch(data: bytes, position: int, header: Any) -> list[Any]:
    """A batch as we read it: offset, epoch, and the JSON of each record."""
    if header.is_control:
        records = [control_json(record) for record in decode_control_batch(data, position, header)]
        rows = [{"type": row["type"], "data": row["data"]} for row in records]
    else:
        records = [record_json(record, show_secrets=True) for record in decode_values(data, position, header)]
        rows = [row if "base64" not in row["data"] else {**row, "data": None} for row in records]
    return [header.base_offset, header.leader_epoch, rows]


def _dumped(batch: DumpedBatch, our: list[Any] | None) -> list[object]:
    """A batch as the tool prints it; of records that aclog does not interpret, such as configs, only the type."""
    rows = [line.json if line.kind == "payload" else {"type": line.kind, "data": line.json} for line in batch.records]
    opaque = {number for number, row in enumerate(our[2] if our else ()) if row["data"] is None}
    rows = [{**row, "data": None} if number in opaque else row for number, row in enumerate(rows)]
    return [batch.fields["base_offset"], batch.fields["leader_epoch"], rows]
