"""`make campaign-hostile`: servers that lie to `apply`, `mirror`, `sync` and `migrate`, and a ZooKeeper that does.

    python -m tests.scenarios.hostile_peers --cases 2000 --seed 1

A case answers every request rightly but for a few answers, which are of a wrong length or correlation id, cut off, with
flipped bits, with a huge length of an array, said twice, or of another request; or the server says that it did what it
did not. A leader also sends damaged batches, offsets that jump, other epochs and marks, another cluster's log and
snapshots that end early. A poll of `sync` removes no more than its limit, and `migrate` succeeds only if the quorum has
what the ZooKeeper has. What a ZooKeeper lists is read whole or not at all, by `migrate` and `acls list`. Each command
ends by itself, with at most a dozen lines and no traceback.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from attrs import evolve

import aclog as library
from aclog.authorizer.acl import StandardAcl
from aclog.client.fetching import EpochEnd, FetchResponse
from aclog.client.snapshots import SnapshotChunk
from aclog.metalog.batches import read_header
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import DecodeError, MetadataError
from aclog.metalog.filelog import open_reader
from aclog.ops import sync
from aclog.protocol.api_keys import CREATE_ACLS, DELETE_ACLS
from aclog.protocol.headers import frame, response_header
from aclog.protocol.responses import CONTROLLER_APIS
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import checkpoint_batches
from aclog.targets import cluster
from aclog.zookeeper import wire
from aclog.zookeeper.znodes import encode_acls, entry_of
from tests.support.builders.acls import acl
from tests.support.builders.state_records import acl as record
from tests.support.cli.command import Result, aclog
from tests.support.fakes.broker import FakeBroker
from tests.support.fakes.leader import FakeLeader
from tests.support.fakes.quorum import FakeQuorum
from tests.support.fakes.zookeeper import FakeZooKeeper, Request, SilenceError, estate
from tests.support.planning.estate import Estate
from tests.support.zookeeper.fake_store import fake_store

_LENGTHS = (0, 1, 3, -1, -(1 << 31), (1 << 31) - 1, 256 << 20, (256 << 20) + 1)
_HUGE = (b"\xff\xff\xff\xff\x0f", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\x80\x80\x80\x08", b"\xff\x7f")
_PATIENCE_S = 1.0
"""How long what was written may take to be seen; what never comes is waited for as long."""
_MOST_SECONDS = 60
_MOST_SAID = 12
"""Lines on stderr: each attempt may be told, and nothing else."""


def mutated(whole: bytes, random: Random) -> tuple[str, bytes, bool]:
    """Return what is sent in the place of a frame, and whether the connection ends with it."""
    kind = random.choice(list(_MUTATIONS))
    sent = _MUTATIONS[kind](whole, random)
    return kind, sent, kind in {"length", "cut"}


def _of_another_length(whole: bytes, random: Random) -> bytes:
    size = len(whole) - 4
    told = random.choice((*_LENGTHS, size - 1, size + 1, size // 2))
    return (told & 0xFFFFFFFF).to_bytes(4) + whole[4:]


def _with_a_huge_number(whole: bytes, random: Random) -> bytes:
    body, put = whole[4:], random.choice(_HUGE)
    at = random.randrange(min(4, len(body)), len(body) + 1)
    return frame(body[:at] + put + body[at + len(put) :])


_MUTATIONS: dict[str, Callable[[bytes, Random], bytes]] = {
    "length": _of_another_length,
    "correlation": lambda whole, random: whole[:4] + random.randbytes(4) + whole[8:],
    "cut": lambda whole, random: whole[: random.randrange(len(whole))],
    "bits": lambda whole, random: whole[:8] + _flipped(whole[8:], random),
    "huge": _with_a_huge_number,
    "twice": lambda whole, random: whole * 2,
    "unasked": lambda whole, random: frame(random.randbytes(12)) + whole,
    "noise": lambda whole, random: frame(whole[4:8] + random.randbytes(random.randrange(200))),
    "empty": lambda whole, random: frame(whole[4:8]),
    "longer": lambda whole, random: frame(whole[4:] + random.randbytes(random.randrange(1, 200))),
}


class Hostile:
    """What a server of a case does to its answers; mixed into one of the fakes."""

    random: Random
    kinds: Counter[str]
    left: int
    """Answers that are yet to be changed."""
    chance: float

    async def _connection(self, reader: Any, writer: Any) -> None:
        with suppress(DecodeError):  # who gets nonsense asks by TLS and HTTP what it talks to
            await super()._connection(reader, writer)  # type: ignore[misc]  # of a fake

    async def _send(self, writer: Any, header: Any, body: bytes) -> bool:
        whole = frame(response_header(header.api_key, header.api_version, header.correlation_id) + body)
        if self.left <= 0 or self.random.random() > self.chance:
            writer.write(whole)
            await writer.drain()
            return True
        self.left -= 1
        kind, sent, ends = mutated(whole, self.random)
        self.kinds[kind] += 1
        writer.write(sent)
        await writer.drain()
        return not ends


class HostileBroker(Hostile, FakeBroker):
    """A broker that may also say that it wrote what it did not."""

    def lie(self, api_key: int, drops: int) -> None:
        """Answer so many requests of an API as if they had been carried out."""
        handler, left = self.handlers[api_key], [drops]

        def lying(version: int, body: Any) -> Any:
            before = list(self.rules)
            found = handler(version, body)
            if left[0] > 0:
                left[0] -= 1
                self.rules = before
                self.kinds["answered success and dropped the write"] += 1
            return found

        self.handlers[api_key] = lying


class HostileLeader(Hostile, FakeLeader):
    """A leader of a quorum."""


BASE = [acl(f"theirs-{number}", "User:old") for number in range(6)]
WANTED = [acl(f"mine-{number}", "User:shop") for number in range(6)]


def apply_case(home: Path, seed: int, kinds: Counter[str]) -> tuple[str, str | None]:
    """Plan on an honest server, apply on it when it is hostile; return what came of it, and what is wrong."""
    random = Random(seed)
    hostile = type("Broker", (HostileBroker,), {"random": random, "kinds": kinds, "left": 0, "chance": 0.0})
    with hostile(BASE) as broker:
        estate = Estate(home, ("--bootstrap-server", broker.address))
        estate.wants(*WANTED[:4])
        estate.bring()
        estate.wants(*WANTED[2:])
        planned = estate.plan()
        wanted = (set(broker.rules) | planned.added()) - planned.removed()
        others = set(BASE)
        broker.left, broker.chance = random.choice((1, 1, 2, 1000)), random.choice((0.05, 0.3, 1.0))
        if random.randrange(3) == 0:
            broker.left = 0
            broker.lie(random.choice((CREATE_ACLS, DELETE_ACLS)), random.choice((1, 1, 100)))
        result = estate.apply()
        broker.left = 0
        return _judged(result, set(broker.rules), wanted, others)


def _judged(
    result: Result, rules: set[StandardAcl], wanted: set[StandardAcl], others: set[StandardAcl]
) -> tuple[str, str | None]:
    if problem := _said_wrongly(result):
        return "odd", problem
    if result.code == 0 and rules != wanted:
        return "odd", f"success, and {rules ^ wanted} is not as planned"
    if not others <= rules:
        return "odd", f"rules of others are gone: {others - rules}"
    return f"exit {result.code}", None


def _said_wrongly(result: Result) -> str | None:
    lines = result.err.splitlines()
    if result.code not in (0, 1, 2):
        return f"exit code {result.code}"
    if "Traceback" in result.err or any(not line.startswith("aclog: ") for line in lines):
        return f"said {result.err!r}"
    if not result.err.isprintable() and any(not line.isprintable() for line in lines):
        return f"unprintable: {result.err!r}"
    return f"{len(lines)} lines: {result.err[:500]!r}" if len(lines) > _MOST_SAID else None


def quorum_of(random: Random) -> FakeQuorum:
    """A log of a few epochs, which may begin after a snapshot."""
    quorum = FakeQuorum(epoch=2)
    number = 0
    for _ in range(random.randrange(3, 12)):
        count = random.randrange(1, 5)
        quorum.append(
            [encode_record(record(number + each)) for each in range(count)], timestamp=1_700_000_000_000 + number
        )
        number += count
        if random.randrange(4) == 0:
            quorum.elect(1)
    if random.randrange(2) == 0:
        applier = Applier()
        kept = list(quorum.batches[: len(quorum.batches) // 2 or 1])
        image = None
        for batch in kept:
            image = applier.apply(batch)
        assert image is not None
        snapshot = EpochEnd(epoch=image.epoch, end_offset=image.end_offset)
        quorum.forget_below(snapshot, b"".join(checkpoint_batches(image)))
    return quorum


def tampered_fetch(random: Random, kinds: Counter[str], left: list[int]) -> Callable[[FetchResponse], FetchResponse]:
    """Return what changes a few answers of a leader."""

    def pick(*values: int) -> int:
        return random.choice(values)

    def end() -> EpochEnd:
        return EpochEnd(epoch=pick(-1, 0, 1, 50), end_offset=pick(-1, 0, 3, 10**9))

    ways: dict[str, Callable[[FetchResponse], dict[str, object]]] = {
        "batch with flipped bits": lambda answer: {"records": _flipped(answer.records, random)},
        "batch cut off": lambda answer: {"records": answer.records[: random.randrange(len(answer.records) + 1)]},
        "batches said twice": lambda answer: {"records": answer.records * 2},
        "offsets that jump": lambda answer: {"records": _moved(answer.records, pick(-7, -1, 1, 5, 1 << 40))},
        "noise for records": lambda answer: {"records": random.randbytes(random.randrange(300))},
        "another mark": lambda answer: {"high_watermark": pick(-1, 0, 1, 10**6, (1 << 63) - 1, -(1 << 63))},
        "another epoch": lambda answer: {"leader_epoch": pick(-1, 0, 1, 99, (1 << 31) - 1)},
        "another start": lambda answer: {"log_start_offset": pick(-1, 5, 10**9)},
        "diverging": lambda answer: {"diverging": end()},
        "a snapshot that is none": lambda answer: {"snapshot": end()},
        "an error": lambda answer: {"error": pick(1, 3, 6, 29, 42, 56, 74, 75, 104, 119)},
    }

    def tamper(answer: FetchResponse) -> FetchResponse:
        if left[0] <= 0 or random.randrange(2):
            return answer
        left[0] -= 1
        kind = random.choice(list(ways))
        kinds[kind] += 1
        return evolve(answer, **ways[kind](answer))

    return tamper


def tampered_chunk(random: Random, kinds: Counter[str], left: list[int]) -> Callable[[SnapshotChunk], SnapshotChunk]:
    """Return what changes a few pieces of a snapshot."""

    def early(chunk: SnapshotChunk) -> dict[str, object]:
        size = max(len(chunk.data) // 2, 1)
        return {"size": size, "data": chunk.data[:size]}

    ways: dict[str, Callable[[SnapshotChunk], dict[str, object]]] = {
        "snapshot that ends early": early,
        "snapshot of another size": lambda chunk: {"size": random.choice((0, -1, 1 << 62, chunk.size + 1))},
        "piece of another place": lambda chunk: {"position": random.choice((-1, 1, 1 << 40))},
        "empty piece": lambda chunk: {"data": b""},
        "piece with flipped bits": lambda chunk: {"data": _flipped(chunk.data, random)},
        "noise for a piece": lambda chunk: {"data": random.randbytes(len(chunk.data))},
    }

    def tamper(chunk: SnapshotChunk) -> SnapshotChunk:
        if left[0] <= 0 or chunk.error:
            return chunk
        left[0] -= 1
        kind = random.choice(list(ways))
        kinds[kind] += 1
        return evolve(chunk, **ways[kind](chunk))

    return tamper


def _flipped(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 3)) if data else 0):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _moved(records: bytes, by: int) -> bytes:
    if len(records) < 8:
        return records
    base = max(int.from_bytes(records[:8], signed=True) + by, 0)
    return base.to_bytes(8, signed=True) + records[8:]


def mirror_case(home: Path, seed: int, kinds: Counter[str]) -> tuple[str, str | None]:
    """Mirror a log from a hostile leader once, and again from an honest one; return as `apply_case`."""
    random = Random(seed)
    quorum = quorum_of(random)
    hostile = type("Leader", (HostileLeader,), {"random": random, "kinds": kinds, "left": 0, "chance": 0.5})
    directory = home / "mirror"
    with hostile(quorum) as leader:
        if random.randrange(2):
            leader.left = random.choice((1, 2, 6))
        left = [random.choice((1, 2, 6))]
        leader.faults.tamper = tampered_fetch(random, kinds, left)
        leader.faults.tamper_chunk = tampered_chunk(random, kinds, [random.choice((0, 1, 3))])
        flags = (
            "mirror",
            "--bootstrap-controller",
            leader.address,
            "--to",
            directory,
            "--once",
            "--give-up-after",
            "2",
        )
        result = aclog(*flags)
        problem = _said_wrongly(result) or _wrong_in(directory, quorum, whole=False)
        leader.left = left[0] = 0
        leader.faults.tamper_chunk = lambda chunk: chunk
        if problem is None and result.code == 0:
            again = aclog(*flags)
            problem = _said_wrongly(again) or _wrong_in(directory, quorum, whole=again.code == 0)
    return ("odd", problem) if problem else (f"exit {result.code}", None)


def _wrong_in(directory: Path, quorum: FakeQuorum, *, whole: bool) -> str | None:
    """Return what a mirror has that the quorum has not committed, or lacks."""
    if not any(directory.glob("*.log")):
        return "no log" if whole else None
    found = []
    try:
        with open_reader(directory) as reader:
            offset, end = reader.start_offset(), reader.high_watermark()
            while offset < end:
                data = reader.read(offset)
                header = read_header(data)
                found.append(bytes(data[: header.size]))
                offset = header.end_offset
    except MetadataError as error:
        return f"the mirror cannot be read: {error}"
    committed = {read_header(batch).base_offset: batch for batch in quorum.batches}
    for batch in found:
        base = read_header(batch).base_offset
        # The checksum does not cover the epoch of a batch: what a leader says of it is believed, up to its own.
        if _without_epoch(committed.get(base, b"")) != _without_epoch(batch):
            return f"the batch at offset {base} is none of the quorum's"
    if whole and found and read_header(found[-1]).end_offset != quorum.high_watermark:
        return f"ends at {read_header(found[-1]).end_offset}, and {quorum.high_watermark} is committed"
    return None


def _without_epoch(batch: bytes) -> bytes:
    return batch[:12] + batch[16:]


def sync_case(home: Path, seed: int, kinds: Counter[str]) -> tuple[str, str | None]:
    """Record an honest cluster once, and then a hostile one; return as `apply_case`."""
    random = Random(seed)
    hostile = type("Broker", (HostileBroker,), {"random": random, "kinds": kinds, "left": 0, "chance": 0.0})
    directory = home / "log"
    rules = [acl(f"theirs-{number}", "User:old") for number in range(40)]
    with hostile(rules) as broker:
        flags = ("sync", "--bootstrap-server", broker.address, "--to", directory, "--once")
        aclog(*flags).ok()
        broker.rules = [*random.sample(rules, 36), *WANTED]
        broker.left, broker.chance = random.choice((1, 1, 2, 1000)), random.choice((0.05, 0.3, 1.0))
        if random.randrange(3) == 0:
            broker.next_rules = lambda: random.sample(broker.rules, random.choice((0, 1, 20, 42)))
            kinds["a part of the rules"] += 1
        result = aclog(*flags)
    with library.open_log(directory) as log:
        present = {rule.acl for rule in log.image().acls()}
    removed = len(set(rules) - present)
    if problem := _said_wrongly(result):
        return "odd", problem
    if removed > 8:
        return "odd", f"{removed} of {len(rules)} rules are gone"
    if result.code and present != set(rules):
        return "odd", f"exit {result.code}, and something is recorded"
    return f"exit {result.code}", None


def migrate_case(home: Path, seed: int, kinds: Counter[str]) -> tuple[str, str | None]:
    """Migrate ACLs to controllers that are hostile; return as `apply_case`."""
    random = Random(seed)
    hostile = type("Controller", (HostileBroker,), {"random": random, "kinds": kinds, "left": 0, "chance": 0.0})
    with hostile([*WANTED[:2], *BASE], apis=CONTROLLER_APIS) as controller, fake_store(WANTED) as store:
        controller.left, controller.chance = random.choice((1, 1, 2, 1000)), random.choice((0.05, 0.3, 1.0))
        if random.randrange(3) == 0:
            controller.left = 0
            controller.lie(random.choice((CREATE_ACLS, DELETE_ACLS)), random.choice((1, 1, 100)))
        flags = ("--replace", "--accept-removal", len(BASE)) if random.randrange(2) else ()
        result = aclog("migrate", "--zookeeper", store, "--bootstrap-controller", controller.address, *flags)
        present = set(controller.rules)
    if problem := _said_wrongly(result):
        return "odd", problem
    if result.code == 0 and present != set(WANTED):
        return "odd", f"success, and {present ^ set(WANTED)} differs"
    if not flags and not set(BASE) <= present:
        return "odd", f"removed without --replace: {set(BASE) - present}"
    return f"exit {result.code}", None


def zookeeper_case(home: Path, seed: int, kinds: Counter[str]) -> tuple[str, str | None]:
    """Read a ZooKeeper that is hostile; return as `apply_case`."""
    random = Random(seed)
    left, chance = [random.choice((1, 1, 2, 1000))], random.choice((0.02, 0.1, 1.0))

    def answer(_request: Request, response: bytes, client: Any) -> bytes:
        if left[0] <= 0 or random.random() > chance:
            return response
        left[0] -= 1
        kind, sent, ends = mutated(response, random)
        kinds[kind] += 1
        client.sendall(sent)
        if ends:
            client.close()
        raise SilenceError

    rules = BASE + WANTED
    nodes = {each.resource_name: encode_acls([entry_of(each)]) for each in rules}
    properties = home / "zk.properties"
    properties.write_text(f"zookeeper.session.timeout.ms={int(_PATIENCE_S * 1000)}\n")
    with FakeZooKeeper(estate(nodes), answer) as server, mock.patch.object(wire, "_MIN_FRAME_S", _PATIENCE_S):
        begin = time.perf_counter()
        if random.randrange(2):
            words = f"zookeeper.connect={server.connect}", f"zookeeper.session.timeout.ms={int(_PATIENCE_S * 1000)}"
            result = aclog("acls", "list", *(each for word in words for each in ("--authorizer-properties", word)))
            printed = result.out
        else:
            flags = "--zk-tls-config-file", properties, "--log", home / "log"
            result = aclog("migrate", "--zookeeper", server.connect, *flags)
            printed = aclog("acls", "list", "--log", home / "log").out
        seconds = time.perf_counter() - begin
    if problem := _said_wrongly(result):
        return "odd", problem
    if seconds > _MOST_SECONDS:
        return "odd", f"{seconds:.0f} s"
    count, is_noted = printed.count("permissionType="), "are ignored" in result.err or "left out" in result.err
    # All is written, and the reading for the comparison afterwards failed.
    is_whole = result.code != 2 or "switched over" in result.err
    if count != (len(rules) if is_whole else 0) and not is_noted:
        return "odd", f"exit {result.code}, and {count} of {len(rules)} rules"
    return f"exit {result.code}", None


CASES = {
    "apply": apply_case,
    "mirror": mirror_case,
    "sync": sync_case,
    "migrate": migrate_case,
    "zookeeper": zookeeper_case,
}


def run(what: str, *, seed: int, cases: int) -> tuple[Counter[str], Counter[str], list[str]]:
    """Run cases; return what came of them, what was done to the answers, and what is wrong."""
    outcomes, kinds, wrong = Counter[str](), Counter[str](), list[str]()
    impatient = partial(cluster.ServerPlace, patience=_PATIENCE_S)
    for number in range(seed, seed + cases):
        with (
            tempfile.TemporaryDirectory() as home,
            mock.patch.object(cluster, "ServerPlace", impatient),
            mock.patch.object(sync, "_SETTLE_SECONDS", 0.0),
        ):
            outcome, problem = CASES[what](Path(home), number, kinds)
            outcomes[outcome] += 1
            if problem is not None:
                wrong.append(f"{what} {number}: {problem}")
    return outcomes, kinds, wrong


def main() -> int:
    """Run and report; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--what", choices=[*CASES], action="append")
    chosen = parser.parse_args()
    bad = []
    for what in chosen.what or CASES:
        begin = time.perf_counter()
        outcomes, kinds, wrong = run(what, seed=chosen.seed, cases=chosen.cases)
        print(f"{what}: {outcomes.total():,} cases in {time.perf_counter() - begin:,.0f} s: {dict(outcomes)}")
        print(f"  changed answers: {dict(kinds.most_common())}")
        print(*(f"  {each}" for each in wrong[:20]), sep="\n")
        bad += wrong
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
