"""Estates with ranges of addresses: one rule in five has one as its host, or a text that looks like one."""

from collections.abc import Mapping
from random import Random

from attrs import evolve

from aclog.authorizer.acl import StandardAcl
from tests.support.kafka.oracle import Ask
from tests.support.models.shapes import HOSTS, ODD, Maker, random_shape

RANGES = 20
"""The share of rules, of 100, whose host is a range."""
CLIENTS = (
    *HOSTS, "0.0.0.0", "0.0.0.1", "10.0.0.0", "10.0.0.255", "10.0.1.0", "10.255.255.255", "11.0.0.0", "127.0.0.1",
    "192.168.1.127", "192.168.1.128", "255.255.255.255", "0:0:0:0:0:0:0:0", "0:0:0:0:0:0:a00:1",
    "2001:db8:0:0:8000:0:0:0", "2001:db8:ffff:0:0:0:0:1", "fe80:0:0:0:0:0:0:1%1",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
)  # fmt: skip
"""Where requests come from: first and last addresses of ranges, and those just outside."""
ODD_RANGES = (
    "/", "a/b", "*/8", "10/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", " 10.0.0.0/8", "10.0.0.0/8 ",
    "010.0.0.0/08", "10.0.0.0/008", "10.0.0.256/8", "10.0.0.0/255.0.0.0", "10.0.0.0/8/8", "10.0.0.1-10.0.0.9/8",
    "\u0661\u0660.0.0.0/8", "::/+32", "::/-0", "::/-1", "::/129", "::/0x20", "::/\u0663\u0662", "[2001:db8::]/32",
    "2001:DB8::/32", "00000:0db8::/32", "::ffff:10.0.0.0/104", "::10.0.0.1/128", "fe80::1%1/64", "fe80::1%zz9/64",
    "2001:db8::/32/32", "2001:db8:::/32", "/::", "::",
)  # fmt: skip
"""Around the edges of what Kafka 4.4 takes for a range; none has a name before a colon, which it would look up."""
_BITS = (0, 1, 7, 8, 9, 16, 24, 25, 31, 32, 33, 64, 65, 127, 128)


class RangeMaker(Maker):
    """An estate with ranges, and requests to it from inside and outside of them.

    `plain`: ranges as people write them only, which the reference model reads.
    """

    def __init__(self, random: Random, *, odd_patterns: bool, plain: bool) -> None:
        only: Mapping[str, tuple[object, ...]] = ODD if odd_patterns else {}
        self._plain = plain
        super().__init__(random_shape(random, **only))

    def _rule(self) -> StandardAcl:
        acl = super()._rule()
        return evolve(acl, host=self._range()) if self._chance(RANGES) else acl

    def _range(self) -> str:
        """A range around a client; one time in five a text at the edge of the grammar."""
        random = self.random
        if random.randrange(5) == 0 and not self._plain:
            return random.choice(ODD_RANGES)
        base = random.choice(CLIENTS).partition("%")[0]
        most = 128 if ":" in base else 32
        return f"{base}/{min(random.choice((*_BITS, random.randrange(most))), most)}"

    def _ask(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> Ask:
        client = self.random.choice(CLIENTS) if self.random.randrange(2) else host
        return super()._ask(principal, client, operation, resource_type, name)
