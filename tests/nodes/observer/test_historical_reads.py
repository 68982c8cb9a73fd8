"""Batches that are fetched again while the quorum moves on."""

import asyncio
import time
from types import SimpleNamespace

from aclog.client.fetching import FetchBuffer, FetchResponse, ObserverOptions
from aclog.client.quorum_log import fetch_committed
from aclog.metalog.batches import build_batch, read_header

BATCHES = [build_batch([b"x"], base_offset=offset, leader_epoch=1, timestamp=0) for offset in range(6)]


def test_a_mark_learned_during_a_fetch_does_not_apply_to_its_records():
    """A deposed leader may return records that its successor has replaced by others, committed meanwhile."""
    shared = FetchBuffer(name="quorum", options=ObserverOptions(), made_room=lambda: None)
    shared.add([], 3)

    async def fetch(offset: int, max_bytes: int) -> FetchResponse:
        shared.add([], 6)  # the next leader's mark
        return FetchResponse(high_watermark=3, leader_epoch=1, records=b"".join(BATCHES[offset:]))

    fetcher = SimpleNamespace(buffer=shared, options=shared.options)
    side = SimpleNamespace(fetcher=fetcher, lock=asyncio.Lock(), deadline=time.monotonic() + 30, fetch=fetch)
    data = asyncio.run(fetch_committed(side, 1, 1 << 20))
    assert data == b"".join(BATCHES[1:3])
    assert read_header(data).base_offset == 1
