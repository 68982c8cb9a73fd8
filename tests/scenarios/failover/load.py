"""Clients that change rules without end, by brokers and at controllers, and remember what they were told."""

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import suppress
from random import Random

from attrs import define, field

from aclog.authorizer.acl import StandardAcl
from aclog.metalog.errors import MetadataError
from tests.support.builders.acls import acl
from tests.support.models.ledger import Ledger
from tests.support.nodes.acl_client import AclClient, exactly

NOT_CONTROLLER, REQUEST_TIMED_OUT = 41, 7
CLIENT_SECONDS = 20.0
_PAUSE_S = 0.05


@define(eq=False, repr=False)
class Worker:
    """Creates rules that nobody has created before, and deletes some of them; never asks twice for the same.

    It goes from one port to the next whenever it is not served, as a client with several bootstrap servers does.
    """

    number: int
    ports: Sequence[int]
    ledger: Ledger
    chance: Random
    mine: list[StandardAcl] = field(factory=list)

    async def run(self) -> None:
        """For ever; connects again after whatever happens to a connection."""
        for step in itertools.count():
            port = self.ports[step % len(self.ports)]
            with suppress(MetadataError):
                async with await AclClient.open(port, timeout=CLIENT_SECONDS) as client:
                    for part in itertools.count():
                        if not await self._change(client, f"w{self.number}-{step}-{part}"):
                            break
                        await asyncio.sleep(0.01)
            await asyncio.sleep(_PAUSE_S)

    async def _change(self, client: AclClient, name: str) -> bool:
        """One change; tells whether the connection is still of use."""
        if self.mine and self.chance.random() < 0.3:
            return await self._delete(client, self.mine.pop(self.chance.randrange(len(self.mine))))
        rules = [acl(name, host=f"10.0.0.{part}") for part in range(self.chance.choice((1, 1, 2, 5)))]
        self.ledger.maybe_created.update(rules)
        try:
            outcomes = await client.create(rules)
        except MetadataError:
            self.ledger.answers["creation without an answer"] += 1
            return False
        codes = {code for code, _ in outcomes}
        if codes == {0}:
            self.ledger.acknowledge("created")
            self.ledger.created.update(rules)
            self.ledger.maybe_created.difference_update(rules)
            self.mine += rules
            return True
        if codes == {NOT_CONTROLLER}:  # certainly not done
            self.ledger.maybe_created.difference_update(rules)
        return self._refused(codes)

    async def _delete(self, client: AclClient, rule: StandardAcl) -> bool:
        self.ledger.maybe_deleted.add(rule)
        try:
            (((code, _), count),) = await client.delete([exactly(rule)])
        except MetadataError:
            self.ledger.answers["deletion without an answer"] += 1
            return False
        if code == 0:
            assert count == 1, f"{rule} was acknowledged, and is not there to be deleted"
            self.ledger.acknowledge("deleted")
            self.ledger.deleted.add(rule)
            self.ledger.maybe_deleted.discard(rule)
            return True
        if code == NOT_CONTROLLER:
            self.ledger.maybe_deleted.discard(rule)
            self.mine.append(rule)
        return self._refused({code})

    def _refused(self, codes: set[int]) -> bool:
        assert len(codes) == 1, f"one request was answered with {codes}"
        (code,) = codes
        assert code in {NOT_CONTROLLER, REQUEST_TIMED_OUT}, f"error {code}"
        self.ledger.answers["not the controller" if code == NOT_CONTROLLER else "timed out"] += 1
        return False
