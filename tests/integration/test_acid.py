"""The acid test: aclog changes the metadata log of a Kafka, and the real Kafka 4.3.1 starts on it."""

import json
from pathlib import Path

import pytest

from aclog.metalog.filelog.files import list_checkpoints, list_segments
from aclog.metalog.filelog.verify import verify
from aclog.snapshots.checkpoints import read_checkpoint
from aclog.snapshots.publisher import recover
from tests.support.builders.acls import acl_row
from tests.support.cli.command import aclog
from tests.support.kafka.described import acl_rows, scram_rows, token_rows
from tests.support.kafka.server import AdminClient, KafkaServer
from tests.support.processes.waiting import wait_until

SECRET = "fixture-secret"


def listed(directory: Path) -> list[dict[str, str]]:
    """What `aclog acls list` shows, without the ids, which DescribeAcls does not tell."""
    rows = [json.loads(line) for line in aclog("acls", "list", "--log", directory, "--format", "jsonl").ok().lines]
    return [{key: value for key, value in row.items() if key != "id"} for row in rows]


def hundred() -> list[dict[str, str]]:
    """Rules of every kind that the fixture does not hold; seven of them on one topic."""
    kinds = ["TOPIC", "GROUP", "TRANSACTIONAL_ID"]
    gone = [rule("TOPIC", "acid-gone", f"User:gone-{number}", number) for number in range(7)]
    return gone + [
        rule(kinds[number % 3], f"acid-{number:03d}-é😀", f"User:acid-{number % 7}", number) for number in range(93)
    ]


def rule(kind: str, name: str, principal: str, number: int) -> dict[str, str]:
    return acl_row(
        name,
        resourceType=kind,
        patternType="PREFIXED" if number % 4 == 1 and name != "acid-gone" else "LITERAL",
        principal=principal,
        host="*" if number % 5 else "10.1.2.3",
        operation="DESCRIBE" if number % 2 else "WRITE" if kind == "TRANSACTIONAL_ID" else "READ",
        permissionType="DENY" if number % 11 == 0 else "ALLOW",
    )


def flags_of(row: dict[str, str]) -> list[str]:
    """The flags of `acls remove` that mean this one rule."""
    side = row["permissionType"].lower()
    place = [f"--{row['resourceType'].lower()}", row["resourceName"]]
    who = [f"--{side}-principal", row["principal"], f"--{side}-host", row["host"], "--operation", row["operation"]]
    return [*place, "--resource-pattern-type", row["patternType"].lower(), *who]


def change(directory: Path) -> list[dict[str, str]]:
    """100 rules come, 10 go (three of them Kafka's), a checkpoint is written; the list afterwards.

    An import of one that no request can create writes none: a Kafka could list no rule at all.
    """
    before = listed(directory)
    lines = "".join(json.dumps(row) + "\n" for row in hundred())
    odd = lines + json.dumps(acl_row("acid-odd", patternType="MATCH")) + "\n"
    assert aclog("import", "-", "--log", directory, "--force", stdin=odd.encode()).complaint == (
        "stdin: line 101: patternType must not be MATCH (CreateAcls refuses it; --keep-odd-rules writes it)"
    )
    aclog("import", "-", "--log", directory, "--force", stdin=lines.encode()).ok()
    aclog("acls", "remove", "--log", directory, "--force", "--topic", "acid-gone").ok()
    for row in [row for row in before if row["resourceType"] in ("TOPIC", "GROUP")][:3]:
        aclog("acls", "remove", "--log", directory, "--force", *flags_of(row)).ok()
    aclog("snapshot", "create", "--log", directory, "--out", directory).ok()
    after = listed(directory)
    assert len(after) == len(before) + 100 - 10
    return after


@pytest.mark.slow(4)
@pytest.mark.tier("test")
def test_kafka_starts_on_what_aclog_appended_and_lists_the_same(stopped_kafka: KafkaServer) -> None:
    directory = stopped_kafka.log_directory
    wanted = change(directory)
    assert list(verify(directory)) == []
    image = recover(directory).image
    assert list_checkpoints(directory)[-1].end_offset == image.end_offset
    with stopped_kafka, AdminClient(stopped_kafka.port) as admin:
        assert admin.acls() == wanted
        assert admin.scram() == scram_rows(image)
        assert admin.tokens() == token_rows(image, SECRET)
        admin("createAcls", acls=hundred()[:2])
        admin("deleteAcls", acls=hundred()[30:32])
        wait_until(lambda: hundred()[31] not in admin.acls())  # the broker replays what its controller acknowledged
        wanted = admin.acls()
    # and back: aclog reads what Kafka wrote after what aclog wrote
    assert listed(directory) == wanted
    assert list(verify(directory)) == []


@pytest.mark.slow(4)
def test_kafka_starts_from_aclogs_checkpoint_alone(stopped_kafka: KafkaServer) -> None:
    directory = stopped_kafka.log_directory
    wanted = change(directory)
    newest = list_checkpoints(directory)[-1].path
    image = read_checkpoint(newest)
    older = [file.path for file in list_checkpoints(directory) if file.path != newest]
    for path in (*older, *(segment.path for segment in list_segments(directory))):
        for file in directory.glob(f"{path.stem}.*"):
            file.unlink()
    with stopped_kafka, AdminClient(stopped_kafka.port) as admin:
        assert admin.acls() == wanted == acl_rows(image)
        assert admin.scram() == scram_rows(image)
        assert admin.tokens() == token_rows(image, SECRET)
