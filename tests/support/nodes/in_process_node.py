"""A node in a thread of the test's own process, so that a test can look at its images."""

import asyncio
import threading
from pathlib import Path
from typing import Self

from aclog.client.requests import cluster_id_of
from aclog.config.server_properties import load_config
from aclog.server.node import Node
from aclog.server.storage import ensure_formatted
from aclog.snapshots.checkpoints import checkpoint_batches
from aclog.snapshots.image import Image
from tests.support.processes.waiting import SECONDS


class InnerNode:
    """Runs what a server.properties describes, from `with` until the end of it; a broker's controller must be there."""

    def __init__(self, properties: Path) -> None:
        self.config = load_config(properties)
        self.digests: dict[int, bytes] = {}
        """Of every image that was published, by its end offset."""
        self._ready = threading.Event()
        self._ended: BaseException | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="inner-node", daemon=True)

    @property
    def image(self) -> Image:
        """What readers see."""
        return self.node.publisher.current

    @property
    def checkpoint(self) -> bytes:
        """The image in its checkpoint form."""
        return b"".join(checkpoint_batches(self.image))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(SECONDS)
        if self._ended is not None:
            raise self._ended
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(SECONDS)
        if self._ended is not None:
            raise self._ended

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            cluster_id = await cluster_id_of(self.config.controller_quorum, self.config.controller_client)
            self.node = Node(config=self.config, meta=ensure_formatted(self.config, cluster_id=cluster_id))
            self.node.publisher.subscribe(self._note)
            running = asyncio.create_task(self.node.run(self._stop))
            serving = asyncio.create_task(self.node.serving.wait())
            await asyncio.wait({running, serving}, return_when=asyncio.FIRST_COMPLETED)
            serving.cancel()
            self._ready.set()
            await running
        except BaseException as error:  # noqa: BLE001 - for the test's thread
            self._ended = error
        finally:
            self._ready.set()

    def _note(self, image: Image) -> None:
        digest = image.acls.digest()
        assert self.digests.setdefault(image.end_offset, digest) == digest
        assert image.end_offset == max(self.digests), "it went back"
