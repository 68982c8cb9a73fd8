"""Who can and what can, beside what Kafka's own authorizer answered (tests/data/golden)."""

import gzip
import json
from pathlib import Path

import pytest

from aclog.analysis.policy import Policy
from aclog.analysis.regions import Query, Request, only
from aclog.analysis.who_can import permissions
from aclog.authorizer.acl import ResourcePattern, host_address
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import CLUSTER_NAME, AclOperation, ResourceType
from aclog.authorizer.settings import Settings, parse_allow_everyone, parse_super_users
from aclog.sources.acl_lines import read_acls

GOLDEN = Path(__file__).parents[1] / "data/golden"
PER_SET = 4


def is_answered(row, decision):
    """Whether Kafka answered a request for one resource that exists, on an operation that a client can ask for."""
    return (
        decision[0] in "AD"
        and "kind" not in row
        and AclOperation[row["operation"]] > AclOperation.ALL
        and ResourceType[row["resourceType"]] > ResourceType.ANY
        and row["resourceName"]
        and (row["resourceType"] != "CLUSTER" or row["resourceName"] == CLUSTER_NAME)
    )


@pytest.mark.parametrize("home", sorted(GOLDEN.iterdir()), ids=lambda home: home.name)
@pytest.mark.sample(6)
def test_permissions_are_what_kafka_answered(home):
    config = json.loads((home / "config.json").read_text())
    settings = Settings(
        super_users=parse_super_users(config["superUsers"]),
        allow_everyone=parse_allow_everyone(str(config["allowEveryone"])),
    )
    policy = Policy(AclsImage.from_acls(read_acls(str(home / "acls.jsonl.gz"))), settings)
    with gzip.open(home / "requests.jsonl.gz", "rt") as asked, gzip.open(home / "decisions.txt.gz", "rt") as answers:
        rows = ((json.loads(line), answer) for line, answer in zip(asked, answers, strict=True))
        rows = [each for each in rows if is_answered(*each)]
    for row, decision in rows[:: max(len(rows) // PER_SET, 1)]:
        kind = ResourceType[row["resourceType"]]
        request = Request(
            principal=row["principal"],
            host=host_address(row["host"]),
            operation=AclOperation[row["operation"]],
            resource_type=kind,
            resource_name=row["resourceName"],
        )
        resource = ResourcePattern(resource_type=kind, name=row["resourceName"])
        who = Query(resources=(resource,), operations=1 << request.operation)
        for query in (who, Query(principals=only(request.principal))):
            assert any(request in each.region for each in permissions(policy, query)) == (decision[0] == "A"), row
