"""Rules that stay, and that Terraform would yet delete and create again, since they change their address."""

from collections import defaultdict
from collections.abc import Mapping

from attrs import frozen

from aclog.authorizer.acl import StandardAcl

Addresses = Mapping[tuple[str, StandardAcl], frozenset[str]]
"""Where Terraform has each rule, by the directory of its files: `module.team.kafka_acl.read[2]`."""


@frozen(kw_only=True)
class Replacement:
    """The rules of one resource that get other addresses."""

    resource: str
    """Without the index, and where it is: `module.team.kafka_acl.read in kafka/teams`."""
    old: str
    """The address of one of them."""
    new: str
    """That rule's address after the change."""
    rules: int

    def text(self) -> str:
        """Return what Terraform does, and why that matters."""
        rules = f"{self.rules:,} rule{'s' * (self.rules != 1)}"
        return (
            f"Terraform replaces {rules} of {self.resource}: the address changes, such as {self.old} -> {self.new}, so "
            "each is deleted and made again, in any order: missing in between, or for good (`moved` blocks prevent it)"
        )


def replacements(before: Addresses, after: Addresses) -> list[Replacement]:
    """Return the replacements, the largest first, by the addresses of the rules of both sides."""
    moved: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for key, addresses in after.items():
        left, reached = before.get(key, frozenset()) - addresses, addresses - before.get(key, frozenset())
        if left and reached:
            directory, _ = key
            old = min(left)
            moved[_resource(old) + (f" in {directory}" if directory else "")].append((old, min(reached)))
    found = [
        Replacement(resource=resource, old=min(pairs)[0], new=min(pairs)[1], rules=len(pairs))
        for resource, pairs in moved.items()
    ]
    return sorted(found, key=lambda each: (-each.rules, each.resource))


def _resource(address: str) -> str:
    return address.rsplit("[", 1)[0] if address.endswith("]") else address
