"""What the voters of the modelled quorum and of a real one must do alike: scripts of an observer's requests.

Each script returns what it has observed, in relation to the quorum's own offsets and epochs, which differ from one
quorum to the other. `python -m tests.simulation.quorum_contract` prints what it is on the model, as JSON.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from attrs import define, field

from aclog.client.connection import Connection
from aclog.client.fetching import EpochEnd, FetchResponse, ObserverOptions, Position, fetch
from aclog.client.requests import CONTROLLERS, describe_cluster
from aclog.client.snapshots import FETCH_SNAPSHOT, SnapshotChunk, parse_snapshot_response, snapshot_request
from aclog.metalog.batches import scan_batches

WAIT_MS = 120_000
"""How long a fetch may wait that is to be answered at once."""
_SHORT_MS = 200
"""How long one waits that is to be answered with nothing."""
_MOST_BYTES = 8 << 20
_MANY = 3
"""Records of one write."""
Script = Callable[["Voters"], Awaitable[Any]]
SCRIPTS: dict[str, Script] = {}


def script(function: Script) -> Script:
    """Add a script."""
    SCRIPTS[function.__name__] = function
    return function


@define
class Voters:
    """A quorum with a leader that stays: connections to its voters, and what is done to it."""

    cluster_id: str
    leader: int
    """The node that leads, in `epoch`."""
    epoch: int
    follower: int
    """Another node."""
    connect: Callable[[int], Awaitable[Connection]]
    write: Callable[[int], Awaitable[None]]
    """Commit so many records of rules, in one batch."""
    trim: Callable[[], Awaitable[None]]
    """Let the leader's log begin after a snapshot."""
    now: Callable[[], float]
    _connections: dict[int, Connection] = field(factory=dict)

    async def to(self, node: int) -> Connection:
        """Return the connection to a node."""
        if node not in self._connections:
            self._connections[node] = await self.connect(node)
        return self._connections[node]

    async def close(self) -> None:
        """Close the connections."""
        for each in self._connections.values():
            with suppress(OSError):
                await each.close()

    async def fetch(
        self,
        offset: int,
        last: int,
        *,
        mark: int = -1,
        epoch: int | None = None,
        node: int | None = None,
        cluster_id: str | None = None,
        wait_ms: int = 0,
        most: int = _MOST_BYTES,
    ) -> FetchResponse:
        """Fetch as an observer; `last` is the epoch before `offset`, `epoch` and `node` are the leader's by default."""
        position = Position(
            offset=offset,
            last_fetched_epoch=last,
            leader_epoch=self.epoch if epoch is None else epoch,
            high_watermark=mark,
        )
        connection = await self.to(self.leader if node is None else node)
        options = ObserverOptions(max_wait_ms=wait_ms)
        return await fetch(connection, position, options, max_bytes=most, cluster_id=cluster_id)

    async def end(self) -> tuple[int, int]:
        """Return the end of the leader's log and the start, once everything is committed, by a fetch beyond it."""
        while True:
            response = await self.fetch(1 << 40, self.epoch)
            assert response.diverging is not None
            if response.diverging.end_offset == response.high_watermark:
                return response.high_watermark, response.log_start_offset
            await asyncio.sleep(0.05)

    async def chunk(
        self, snapshot: EpochEnd, position: int, *, epoch: int | None = None, most: int = _MOST_BYTES
    ) -> SnapshotChunk:
        """Fetch bytes of a snapshot from the leader."""
        connection = await self.to(self.leader)
        version = connection.version(FETCH_SNAPSHOT, 0, 1)
        request = snapshot_request(
            snapshot,
            position,
            self.epoch if epoch is None else epoch,
            version,
            max_bytes=most,
            cluster_id=self.cluster_id,
        )
        return parse_snapshot_response(await connection.ask(request, 30.0))

    def seen(self, response: FetchResponse, end: int, start: int = 0) -> dict[str, Any]:
        """Return what is comparable: offsets as they relate to the end and the start of the log."""
        names = {end: "end", start: "start"} if end != start else {end: "end"}

        def name(offset: int) -> Any:
            return names.get(offset, "unknown" if offset < 0 else "between" if offset < end else "beyond")

        headers, damage = scan_batches(response.records)
        batches = [name(int(headers.base_offset[0])), name(int(headers.end_offset[-1]))] if len(headers) else []
        diverging = response.diverging
        return {
            "error": response.error,
            "leader": {self.leader: "leader", -1: "none"}.get(response.leader_id, "other"),
            "epoch": response.leader_epoch - self.epoch if response.leader_epoch >= 0 else None,
            "mark": name(response.high_watermark),
            "start": name(response.log_start_offset),
            "records": batches,
            "damage": damage is not None,
            "diverging": None if diverging is None else [self._epoch(diverging.epoch), name(diverging.end_offset)],
            "snapshot": response.snapshot is not None,
        }

    def _epoch(self, epoch: int) -> Any:
        return "now" if epoch == self.epoch else epoch


def _refusal(response: FetchResponse, voters: Voters) -> dict[str, Any]:
    """What of a refusal an observer uses: the error, and who leads in which epoch."""
    return {
        "error": response.error,
        "leader": response.leader_id == voters.leader,
        "epoch": response.leader_epoch == voters.epoch,
        "address": voters.leader in response.endpoints,
    }


@script
async def a_log_is_fetched_from_its_start(voters: Voters) -> Any:
    """All of it up to the end, batch by batch, and nothing at the end."""
    await voters.write(_MANY)
    end, start = await voters.end()
    whole = await voters.fetch(0, 0)
    # A response has at least one batch, however few bytes are asked for.
    first = await voters.fetch(0, 0, most=1)
    batches = scan_batches(whole.records)[0]
    one = scan_batches(first.records)[0]
    at_end = await voters.fetch(end, voters.epoch, mark=end, wait_ms=_SHORT_MS)
    return [
        voters.seen(whole, end, start),
        len(one) == 1 and int(one.end_offset[0]) == int(batches.end_offset[0]),
        voters.seen(at_end, end, start),
        int(batches.leader_epoch[-1]) == voters.epoch,
    ]


@script
async def a_diverging_position_is_told_where_its_epoch_ends(voters: Voters) -> Any:
    """Beyond the end, in an epoch after the leader's (refused), before the first one, and in the middle of the log."""
    await voters.write(_MANY)
    end, start = await voters.end()
    tried = [(end + 100, 0), (end, 5), (end + 100, 5), (end, -voters.epoch), (end - 1, 0), (end, 0)]
    return [
        voters.seen(await voters.fetch(offset, voters.epoch + ahead, mark=end, wait_ms=_SHORT_MS), end, start)
        for offset, ahead in tried
    ]


@script
async def other_epochs_and_nodes_are_refused(voters: Voters) -> Any:
    """A leader refuses a past and a future epoch, a follower every fetch; each names the leader.

    So does one that gets a request with records of a later epoch than that of its leader.
    """
    end, _ = await voters.end()
    return [
        _refusal(await voters.fetch(end, voters.epoch - 1, epoch=voters.epoch - 1), voters),
        _refusal(await voters.fetch(end, voters.epoch, epoch=voters.epoch - 1), voters),
        _refusal(await voters.fetch(end, voters.epoch + 1, node=voters.follower), voters),
        _refusal(await voters.fetch(end, voters.epoch, epoch=voters.epoch + 1), voters),
        _refusal(await voters.fetch(end, voters.epoch, node=voters.follower), voters),
        _refusal(await voters.fetch(end, voters.epoch, node=voters.follower, epoch=voters.epoch + 1), voters),
    ]


@script
async def another_cluster_is_refused(voters: Voters) -> Any:
    """A request with another cluster's id is refused, one without an id is not; DescribeCluster has the id."""
    end, start = await voters.end()
    other = await voters.fetch(0, 0, cluster_id="b3RoZXItc2NyaXB0LTAwMQ")
    described = await describe_cluster(await voters.to(voters.leader), CONTROLLERS)
    return [
        other.error,
        other.records == b"",
        voters.seen(await voters.fetch(0, 0, cluster_id=voters.cluster_id), end, start),
        voters.seen(await voters.fetch(0, 0), end, start),
        described.cluster_id == voters.cluster_id,
    ]


@script
async def a_mark_that_has_moved_ends_a_wait(voters: Voters) -> Any:
    """A fetch at the end waits, but not if the mark of the request is behind the leader's; a record ends the wait."""
    end, start = await voters.end()
    begun = voters.now()
    known = await voters.fetch(end, voters.epoch, mark=end - 1, wait_ms=WAIT_MS)
    at_once = voters.now() - begun < WAIT_MS / 2000
    begun = voters.now()
    waiting = asyncio.ensure_future(voters.fetch(end, voters.epoch, mark=end, wait_ms=WAIT_MS))
    await asyncio.sleep(0.5)
    waited = not waiting.done()
    await voters.write(1)
    news = await waiting
    in_time = voters.now() - begun < WAIT_MS / 2000
    later, _ = await voters.end()
    # The record comes before its commit: the mark is still the one before.
    seen = voters.seen(news, later, start)
    return [voters.seen(known, end, start), at_once, waited, in_time, seen["error"], seen["records"][-1:]]


@script
async def a_trimmed_log_names_its_snapshot(voters: Voters) -> Any:
    """Below the start, or at the start with another epoch; with the epoch of the snapshot, records follow."""
    await voters.trim()
    await voters.write(_MANY)
    end, start = await voters.end()
    below = await voters.fetch(max(start - 1, 1), voters.epoch)
    snapshot = below.snapshot
    assert snapshot is not None
    at_start = await voters.fetch(start, voters.epoch - 1)
    # The first record of the log may be older than the snapshot: the log begins at the end of a batch before it.
    after = await voters.fetch(snapshot.end_offset, snapshot.epoch)
    seen = voters.seen(after, end, start)
    return [
        start > 0,
        [voters.seen(each, end, start)["snapshot"] for each in (below, await voters.fetch(0, 0), at_start)],
        [len(each.records) for each in (below, at_start)],
        start <= snapshot.end_offset <= end,
        snapshot.epoch == voters.epoch,
        # A response ends with the segment at the latest: only that it has records is the same.
        [seen["error"], seen["diverging"], seen["snapshot"], len(seen["records"])],
    ]


@script
async def a_snapshot_is_fetched_in_pieces(voters: Voters) -> Any:
    """Pieces of the size that was asked for make up whole batches; everything else is an error."""
    await voters.trim()
    snapshot = (await voters.fetch(0, 0)).snapshot
    assert snapshot is not None
    first = await voters.chunk(snapshot, 0, most=100)
    data, position = bytearray(first.data), len(first.data)
    while position < first.size:
        piece = await voters.chunk(snapshot, position, most=1 + first.size // 3)
        data, position = data + piece.data, position + len(piece.data)
    headers, damage = scan_batches(bytes(data))
    refused = [
        await voters.chunk(EpochEnd(epoch=snapshot.epoch, end_offset=snapshot.end_offset + 1), 0),
        await voters.chunk(snapshot, first.size),
        await voters.chunk(snapshot, -1),
        await voters.chunk(snapshot, 0, epoch=voters.epoch + 1),
        await voters.chunk(snapshot, 0, epoch=voters.epoch - 1),
    ]
    return [
        [first.error, first.position, len(first.data)],
        [len(data) == first.size, damage is None, len(headers) >= 2, bool(headers.is_control[-1])],
        [each.error for each in refused],
        [len(each.data) for each in refused],
    ]


# The model


def of_model(name: str) -> Any:
    """Run a script on the model, with the voters' servers on the simulated network."""
    from random import Random

    from aclog.client.connection import connect
    from aclog.config.node_config import ClientSecurity, HostPort
    from tests.simulation.network import Network
    from tests.simulation.processes import EPOCH, Host, simulated_machine
    from tests.simulation.quorum_model import Quorum, Voter, endpoints_of
    from tests.simulation.quorum_server import VoterServer
    from tests.simulation.scheduler import Scheduler
    from tests.simulation.world import RULES

    cluster_id, port, random = "c2FtZS1zY3JpcHQtMDAwMQ", 9092, Random(name)
    scheduler = Scheduler(len(name))
    observed: list[Any] = []
    with simulated_machine(scheduler):
        network = Network(scheduler)
        quorum = Quorum(scheduler, RULES, lambda: int(1000 * (EPOCH + scheduler.now)))
        for number in (1, 2, 3):
            host = Host(scheduler, network, f"v{number}", number)
            voter = Voter(number, host.address)
            quorum.voters.append(voter)
            server = VoterServer(voter, cluster_id, lambda: endpoints_of(quorum.voters, port))
            host.start(lambda process, server=server: server.run(process, network, port))  # type: ignore[misc]
        quorum.begin()
        scheduler.run(10.0)
        leader = quorum.leader()
        assert leader is not None

        async def write(count: int) -> None:
            for _ in range(count):
                quorum.write(leader, random)
            while leader.mark < leader.last.end:
                await asyncio.sleep(0.1)

        async def trim() -> None:
            await write(5)
            quorum.take_snapshot(leader, random, 1)

        async def run(_process: Any) -> None:
            voters = Voters(
                cluster_id=cluster_id,
                leader=leader.number,
                epoch=leader.epoch,
                follower=next(each.number for each in quorum.voters if each is not leader),
                connect=lambda node: connect(
                    HostPort(host=quorum.voters[node - 1].address, port=port), ClientSecurity(), client_id="contract"
                ),
                write=write,
                trim=trim,
                now=lambda: scheduler.now,
            )
            observed.append(await SCRIPTS[name](voters))
            await voters.close()

        client = Host(scheduler, network, "k", 4)
        process = client.start(run)
        scheduler.run(scheduler.now + 1_000.0, done=lambda: process.ended)
        if process.error is not None:
            raise process.error
        for each in network.hosts.values():
            each.kill()
    assert not scheduler.failures, scheduler.failures
    return observed[0]


if __name__ == "__main__":
    print(json.dumps({name: of_model(name) for name in SCRIPTS}))
