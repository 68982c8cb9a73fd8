"""A repository of rules with a main branch, and pull requests against it: one of each kind of accident."""

from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from tests.support.cli.repository import Repository

_CSV = "KafkaPrincipal,ResourceType,PatternType,ResourceName,Operation,PermissionType,Host\n"

ORDERS = _CSV + (
    "User:orders-api,Topic,PREFIXED,orders.,Write,Allow,*\n"
    "User:orders-api,TransactionalId,LITERAL,orders-api-tx,Write,Allow,*\n"
    "User:orders-etl,Topic,PREFIXED,orders.,Read,Allow,*\n"
    "User:orders-etl,Group,PREFIXED,orders-etl-,Read,Allow,*\n"
    "User:orders-web,Topic,LITERAL,orders.placed,Read,Allow,10.1.0.7\n"
    "User:orders-web,Group,LITERAL,orders-web,Read,Allow,10.1.0.7\n"
)

BILLING = _CSV + (
    "User:billing,Topic,LITERAL,orders.placed,Read,Allow,*\n"
    "User:billing,Topic,PREFIXED,billing.,All,Allow,*\n"
    "User:billing,Group,PREFIXED,billing-,Read,Allow,*\n"
    "User:billing,TransactionalId,LITERAL,billing-tx,Write,Allow,*\n"
    "User:*,Topic,PREFIXED,billing.pii.,All,Deny,*\n"
)

AUDIT = _CSV + (
    "User:audit,Topic,LITERAL,*,Read,Allow,*\n"
    "User:audit,Group,LITERAL,audit,Read,Allow,*\n"
    "User:monitor,Cluster,LITERAL,kafka-cluster,Describe,Allow,*\n"
)

TERRAFORM = """
locals {
  readers = ["search", "stock", "mail"]
}

resource "kafka_acl" "read" {
  count                        = length(local.readers)
  resource_name                = "catalog."
  resource_type                = "Topic"
  resource_pattern_type_filter = "Prefixed"
  acl_principal                = "User:${local.readers[count.index]}"
  acl_host                     = "*"
  acl_operation                = "Read"
  acl_permission_type          = "Allow"
}

resource "kafka_acl" "group" {
  for_each                     = toset(local.readers)
  resource_name                = "${each.key}-"
  resource_type                = "Group"
  resource_pattern_type_filter = "Prefixed"
  acl_principal                = "User:${each.key}"
  acl_host                     = "*"
  acl_operation                = "Read"
  acl_permission_type          = "Allow"
}
"""

TESTS = """
tests:
- name: billing
  principal: User:billing
  intents:
    consume: {topic: orders.placed, group: billing-app}
  cannot: {ALL: ["topic:billing.pii.*"]}
- who_can: {WRITE topic:orders.placed: [User:orders-api]}
"""

TOPICS = "orders.placed\norders.shipped\norderspii.raw\nbilling.invoices\nbilling.pii.cards\ncatalog.items\n"

_ACCESS = '{"principal":"%s","host":"%s","operation":"%s","resourceType":"%s","resourceName":"%s"}\n'

ACCESSES = "".join(
    _ACCESS % each * count
    for count, each in (
        (40, ("User:billing", "10.2.0.1", "READ", "TOPIC", "orders.placed")),
        (40, ("User:billing", "10.2.0.1", "READ", "GROUP", "billing-app")),
        (12, ("User:billing", "10.2.0.1", "WRITE", "TRANSACTIONAL_ID", "billing-tx")),
        (30, ("User:orders-web", "10.1.0.7", "READ", "TOPIC", "orders.placed")),
        (30, ("User:orders-web", "10.1.0.7", "READ", "GROUP", "orders-web")),
        (9, ("User:orders-etl", "10.1.0.8", "READ", "TOPIC", "orders.shipped")),
    )
)

MAIN: Mapping[str, str] = {
    "kafka/teams/orders.csv": ORDERS,
    "kafka/teams/billing.csv": BILLING,
    "kafka/audit.csv": AUDIT,
    "kafka/catalog/main.tf": TERRAFORM,
    "tests/rules.yaml": TESTS,
    "topics.txt": TOPICS,
    "accesses.jsonl": ACCESSES,
}


@frozen(kw_only=True)
class Edit:
    """A text in a file that becomes another."""

    file: str
    old: str
    new: str


@frozen(kw_only=True)
class PullRequest:
    """An accident, and what a reviewer must read of it within the first five lines."""

    name: str
    edits: tuple[Edit, ...]
    expected: tuple[str, ...]
    """Parts of the first five lines."""
    in_comment: tuple[str, ...] = ()
    """Parts of the comment before its first folded section, if the words are others."""
    removed: tuple[str, ...] = ()
    added: Mapping[str, str] = {}


def _edit(file: str, old: str, new: str) -> Edit:
    return Edit(file=f"kafka/{file}", old=old, new=new)


_BILLING_LINES = BILLING.splitlines(keepends=True)

PULL_REQUESTS = (
    PullRequest(
        name="widened prefix",
        edits=(
            _edit(
                "teams/orders.csv",
                "User:orders-etl,Topic,PREFIXED,orders.,Read",
                "User:orders-etl,Topic,PREFIXED,orders,Read",
            ),
        ),
        expected=("GAINED  User:orders-etl: READ, DESCRIBE on TOPIC (orders* except orders.*)",),
        in_comment=("User:orders-etl gains READ, DESCRIBE on topics orders* except orders.*", "orderspii.raw"),
    ),
    PullRequest(
        name="dropped deny",
        edits=(_edit("teams/billing.csv", _BILLING_LINES[-1], ""),),
        expected=(
            "GAINED  User:audit, User:billing: at most ALL on TOPIC billing.pii.*, from any host",
            "(some principals and hosts may be unaffected)",
            "2 principals gain access that other rules grant",
            "test fails",
        ),
        in_comment=(
            "User:audit, User:billing gain at most ALL on topics billing.pii.* (no longer denied by",
            "test fails",
        ),
    ),
    PullRequest(
        name="renamed principal",
        edits=(_edit("teams/billing.csv", "User:billing,", "User:biling,"),),
        expected=("principal renamed: User:billing -> User:biling: 4 rules; User:billing has none left", "breaks"),
        in_comment=(
            "principal renamed: User:billing to User:biling (4 rules); User:billing has no rules left",
            "breaks",
        ),
    ),
    PullRequest(
        name="moved file",
        edits=(),
        removed=("kafka/teams/billing.csv",),
        added={"kafka/finance/billing.csv": BILLING},
        expected=("no effective change", "5 rules moved from kafka/teams/billing.csv to kafka/finance/billing.csv"),
    ),
    PullRequest(
        name="reordered count index",
        edits=(_edit("catalog/main.tf", '["search", "stock", "mail"]', '["mail", "search", "stock"]'),),
        expected=("no effective change", "Terraform replaces 3 rules of kafka_acl.read"),
    ),
    PullRequest(
        name="host typo",
        edits=(_edit("teams/orders.csv", "orders.placed,Read,Allow,10.1.0.7", "orders.placed,Read,Allow,10.1.0.77"),),
        expected=("LOST  User:orders-web: READ, DESCRIBE on TOPIC orders.placed, from 10.1.0.7", "breaks", "10.1.0.77"),
        in_comment=("loses READ, DESCRIBE on topic orders.placed, from 10.1.0.7 (breaks 30 recent", "10.1.0.77"),
    ),
    PullRequest(
        name="group forgotten",
        edits=(
            _edit(
                "teams/orders.csv",
                "User:orders-web,Topic",
                "User:orders-app,Topic,LITERAL,orders.shipped,Read,Allow,*\nUser:orders-web,Topic",
            ),
        ),
        expected=("new lint finding [", "User:orders-app", "group"),
        in_comment=("1 new lint warning", "User:orders-app gains", "lint 13 consumer-without-group"),
    ),
    PullRequest(
        name="transactional id forgotten",
        edits=(
            _edit(
                "teams/billing.csv",
                "".join(_BILLING_LINES[1:4]),
                "".join(_BILLING_LINES[1:4]).replace("User:billing,", "User:billing-v2,"),
            ),
        ),
        expected=("principal renamed: User:billing -> User:billing-v2: 3 rules", "new lint finding [", "billing-tx"),
        in_comment=("principal renamed: User:billing to User:billing-v2 (3 rules)", "1 new lint warning"),
    ),
    PullRequest(
        name="star for a prefix",
        edits=(
            _edit(
                "teams/orders.csv",
                "User:orders-etl,Topic,PREFIXED,orders.,Read",
                "User:orders-etl,Topic,LITERAL,orders.*,Read",
            ),
        ),
        expected=("LOST  User:orders-etl: READ, DESCRIBE on TOPIC (orders.*", "new lint finding [", "orders.*"),
        in_comment=("User:orders-etl loses READ, DESCRIBE on topics orders.*", "new lint error 02 glob-in-name"),
    ),
    PullRequest(name="nothing at all", edits=(_edit("audit.csv", "\n", "\n\n"),), expected=("no effective change",)),
)


_MODULE = """
variable "cn" { type = string }
variable "topics" { type = list(string) }
resource "kafka_acl" "read" {
  for_each            = toset(var.topics)
  resource_name       = each.value
  resource_type       = "Topic"
  acl_principal       = "User:${var.cn}"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}
"""

_CALL = """
module "invoices" {
  source = "../modules/reader"
  cn     = "invoices"
  topics = ["invoices"]
}
"""

_VARIABLES = """
variable "reader" { default = "payments-web" }
resource "kafka_acl" "payments" {
  resource_name                = "payments."
  resource_pattern_type_filter = "Prefixed"
  resource_type                = "Topic"
  acl_principal                = "User:${var.reader}"
  acl_host                     = "*"
  acl_operation                = "Read"
  acl_permission_type          = "Allow"
}
"""

_USER = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata: {name: shop, labels: {strimzi.io/cluster: c}}
spec:
  authorization:
    type: simple
    acls:
      - resource: {type: topic, name: shop., patternType: prefix}
        operations: [Read]
"""

MODULES: Mapping[str, str] = {
    "kafka/modules/reader/main.tf": _MODULE,
    "kafka/prod/invoices.tf": _CALL,
    "kafka/payments/main.tf": _VARIABLES,
    "kafka/payments/terraform.tfvars": 'reader = "payments-api"\n',
    "kafka/shop/user.yaml": _USER,
}
"""Besides MAIN: rules whose principals and names are in other files than their statements."""


def _added(file: str, *rules: str) -> Edit:
    return _edit(file, _CSV, _CSV + "".join(f"{rule}\n" for rule in rules))


ACCIDENTS = (
    PullRequest(
        name="everyone reads everything",
        edits=(_added("audit.csv", "User:*,Topic,LITERAL,*,Read,Allow,*"),),
        expected=("FAILS: everyone gains at most READ, DESCRIBE on all topics",),
    ),
    PullRequest(
        name="one letter as a prefix",
        edits=(_added("teams/orders.csv", "User:orders-web,Topic,PREFIXED,o,All,Allow,*"),),
        expected=("User:orders-web gains at most ALL on topics o*", "a short prefix"),
    ),
    PullRequest(
        name="alter on the cluster",
        edits=(_added("audit.csv", "User:monitor,Cluster,LITERAL,kafka-cluster,Alter,Allow,*"),),
        expected=("User:monitor gains ALTER on the cluster (it can change ACLs)",),
    ),
    PullRequest(
        name="offsets for everyone",
        edits=(_added("audit.csv", "User:*,Topic,LITERAL,__consumer_offsets,Write,Allow,*"),),
        expected=("everyone gains at most WRITE, DESCRIBE on topic __consumer_offsets (an internal topic of Kafka)",),
    ),
    PullRequest(
        name="star in a module call",
        edits=(_edit("prod/invoices.tf", 'topics = ["invoices"]', 'topics = ["invoices", "*"]'),),
        expected=("User:invoices gains READ, DESCRIBE on all topics", "kafka/prod/invoices.tf:2"),
    ),
    PullRequest(
        name="everyone in tfvars",
        edits=(_edit("payments/terraform.tfvars", "payments-api", "*"),),
        expected=("everyone except User:payments-api gains READ, DESCRIBE on topics payments.*",),
    ),
    PullRequest(
        name="all in a user",
        edits=(_edit("shop/user.yaml", "{type: topic, name: shop., patternType: prefix}", "{type: topic, name: '*'}"),),
        expected=("User:shop gains READ, DESCRIBE on all topics",),
    ),
    PullRequest(
        name="no rules left",
        edits=(),
        removed=("kafka/teams/billing.csv",),
        expected=("User:audit gains READ, DESCRIBE on topics billing.pii.*", "breaks 92 recent accesses"),
    ),
    PullRequest(
        name="sixty rules",
        edits=(_added("audit.csv", *(f"User:app-{n},Topic,LITERAL,data-{n},Read,Allow,*" for n in range(60))),),
        expected=("User:app-0 gains READ, DESCRIBE on topic data-0",),
    ),
    PullRequest(
        name="names that are markup",
        edits=(
            _added(
                "audit.csv",
                "User:`|**<b>@all</b>#1,Topic,LITERAL,$x$ [a](http://evil.example) www.evil.example,Read,Allow,*",
                "User:\u05d0\u05d1,Topic,LITERAL,safe,Read,Allow,*",
                "User:<!-- aclog review -->,Topic,LITERAL,*,All,Allow,*",
            ),
        ),
        expected=("gains ALL on all topics",),
    ),
)
"""What an outsider must see at once: pull requests on MAIN with MODULES; the comment has what is expected."""


def write_main(directory: Path, more: Mapping[str, str] | None = None) -> Repository:
    """Make a repository with the main branch, and nothing else; `more`: further files."""
    repository = Repository.create(directory)
    repository.commit({**MAIN, **(more or {})})
    return repository


def apply(request: PullRequest, directory: Path) -> None:
    """Make the change of a pull request in the working tree."""
    for edit in request.edits:
        path = directory / edit.file
        text = path.read_text()
        assert edit.old in text, f"{request.name}: {edit.file} has no {edit.old!r}"
        path.write_text(text.replace(edit.old, edit.new))
    for name in request.removed:
        (directory / name).unlink()
    for name, text in request.added.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
