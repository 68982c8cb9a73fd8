"""A minimal KIP-595 follower against the Fetch handlers: it reaches the leader's state."""

import asyncio
from datetime import timedelta

from aclog.authorizer.interface import RequestContext
from aclog.metalog.batches import iter_batches
from aclog.protocol import api_keys
from aclog.protocol.messages import build
from aclog.server.controller.fetch import METADATA_TOPIC, METADATA_TOPIC_ID
from aclog.server.loops import committed
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import checkpoint_batches, decode_checkpoint
from tests.support.builders.acls import acl
from tests.support.nodes.controllers import call, formatted, running, with_policy

CONTEXT = RequestContext(principal="User:admin", host="127.0.0.1")


class Follower:
    """Fetches, applies, and loads a checkpoint when the leader says so; never sees uncommitted records."""

    def __init__(self, server):
        self.server, self.applier, self.mark, self.checkpoints = server, Applier(), -1, 0
        self.last_epoch = 0

    async def step(self):
        def part(structure, **values):
            return build(api_keys.FETCH, 18, "request", structure, **values)

        wanted = part(
            "FetchPartition",
            current_leader_epoch=self.server.serving.quorum.leader().epoch,
            fetch_offset=self.applier.next_offset,
            last_fetched_epoch=self.last_epoch,
            high_watermark=self.mark,
        )
        topic = part("FetchTopic", topic_id=METADATA_TOPIC_ID, partitions=(wanted,))
        message = build(
            api_keys.FETCH, 18, "request", topics=(topic,), cluster_id="a-cluster", max_wait=timedelta(milliseconds=50),
            max_bytes=3000,
        )  # fmt: skip
        answer = await call(self.server, api_keys.FETCH, 18, message)
        found = answer.responses[0].partitions[0]
        assert (answer.error_code, found.error_code) == (0, 0)
        assert found.diverging_epoch.epoch == -1
        assert found.high_watermark >= self.mark
        self.mark = found.high_watermark
        assert self.mark <= self.server.serving.log.high_watermark()
        if found.snapshot_id.epoch >= 0:
            await self.load(found.snapshot_id)
            return
        records = bytes(found.records or b"")
        for _, header in iter_batches(records):
            assert header.end_offset <= self.mark
            self.last_epoch = header.leader_epoch
        self.applier.apply(records)

    async def load(self, id):  # noqa: A002
        def part(structure, **values):
            return build(api_keys.FETCH_SNAPSHOT, 1, "request", structure, **values)

        data, size = b"", 1
        while len(data) < size:
            wanted = part(
                "PartitionSnapshot",
                current_leader_epoch=self.server.serving.quorum.leader().epoch,
                snapshot_id=part("SnapshotId", end_offset=id.end_offset, epoch=id.epoch),
                position=len(data),
            )
            topic = part("TopicSnapshot", name=METADATA_TOPIC, partitions=(wanted,))
            message = build(api_keys.FETCH_SNAPSHOT, 1, "request", topics=(topic,), max_bytes=500, cluster_id=None)
            answer = await call(self.server, api_keys.FETCH_SNAPSHOT, 1, message)
            found = answer.topics[0].partitions[0]
            if found.error_code == 98:
                return  # gone since: ask again
            assert found.error_code == 0
            data, size = data + bytes(found.unaligned_records), found.size
        self.applier.load(decode_checkpoint(data, end_offset=id.end_offset, epoch=id.epoch))
        self.last_epoch = id.epoch
        self.checkpoints += 1

    async def run(self, until):
        while not (until.is_set() and self.applier.next_offset == self.server.serving.log.high_watermark()):
            await self.step()


async def test_followers_reach_the_leader_while_it_writes_checkpoints_and_drops_segments(tmp_path):
    config = with_policy(
        formatted(tmp_path), bytes_between=4000, interval_ms=0, retention_bytes=12_000, segment_bytes=3000
    )
    async with running(config) as server:
        written = asyncio.Event()
        steady = Follower(server)
        steady_run = asyncio.create_task(steady.run(written))

        async def client(number):
            for turn in range(20):
                await committed(server.serving.controller.create_acls(CONTEXT, [acl(f"{number}-{turn}")]))

        await asyncio.gather(*map(client, range(8)))
        late = Follower(server)
        late_run = asyncio.create_task(late.run(written))
        await asyncio.gather(*map(client, range(8, 12)))
        written.set()
        async with asyncio.timeout(60):
            await asyncio.gather(steady_run, late_run)
        leader = b"".join(checkpoint_batches(server.publisher.current))
        for follower in (steady, late):
            image = follower.applier.image
            assert image.acls.digest() == server.publisher.current.acls.digest()
            assert image.provenance == server.publisher.current.provenance
            assert len(b"".join(checkpoint_batches(image))) == len(leader)
        assert late.checkpoints > 0
        assert len(server.publisher.current.acls) == 240
