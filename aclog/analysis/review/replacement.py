"""Rules that stay, and that Terraform would yet delete and create again, since they change their address."""

from collections.abc import Mapping

from attrs import frozen

from aclog.authorizer.acl import StandardAcl


@frozen(kw_only=True)
class Replacement:
    """The rules of one resource, which has `count` or `for_each`, that change their index."""

    resource: str
    """Without the index, and where it is: `module.team.kafka_acl.read in kafka/teams`."""
    rules: int

    def text(self) -> str:
        """Return what Terraform does, and why that matters."""
        rules = f"{self.rules:,} rule{'s' * (self.rules != 1)}"
        return (
            f"Terraform replaces {rules} of {self.resource}: their index changes, so each is deleted, then made again, "
            "and missing in between"
        )


def replacements(
    before: Mapping[tuple[str, str], StandardAcl], after: Mapping[tuple[str, str], StandardAcl]
) -> list[Replacement]:
    """Return the replacements among rules by the directory of their files and their address, `kafka_acl.read[2]`."""
    kept = set(before.values()) & set(after.values())
    counted: dict[str, int] = {}
    for key, rule in after.items():
        if rule in kept and key in before and before[key] != rule:
            directory, address = key
            resource = address.rsplit("[", 1)[0] + (f" in {directory}" if directory else "")
            counted[resource] = counted.get(resource, 0) + 1
    return [Replacement(resource=resource, rules=count) for resource, count in counted.items()]
