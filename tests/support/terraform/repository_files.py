"""The files of the generated Terraform repository, and ways to break them."""

# ruff: noqa: E501

import json
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.terraform.repository import Estate, Team

_VARIABLES = """variable "teams" {
  description = "by name"
  type = map(object({
    topics = list(string)
    groups = optional(list(string), [])
    host   = optional(string)
    access = optional(object({ reader = optional(bool, false), legacy = optional(number, 0) }), {})
  }))
}

variable "prefix" {
  type    = string
  default = "none"
}

variable "strict" {
  default = false
}

variable "replicas" {
  type     = number
  default  = 1
  nullable = false
}
"""

_LOCALS = """locals {
  environment = basename(local.home)
  home        = "clusters/%(root)s"
  base        = "${var.prefix}.${local.environment}"
  # every pair of a team and a topic
  grants = flatten([
    for name, team in var.teams : [
      for topic in team.topics : {
        key       = "${name}/${topic}"
        principal = "User:${name}"
        topic     = "${local.base}.${topic}"
        host      = team.host == null ? "*" : team.host
        (local.operations_key) = team.access.reader ? ["Read", "Describe"] : ["Write"]
      }
    ]
  ])
  operations_key = "operations"
  readers        = [for name, team in var.teams : name if team.access.reader]
  legacy         = { for name, team in var.teams : name => team.access.legacy if team.access.legacy > 0 }
  by_host        = { for grant in local.grants : grant.host => grant.topic... }
  rows           = csvdecode(file("${path.module}/../../data/shared.csv"))
  partners       = yamldecode(file("${path.root}/../../data/partners.yaml"))
  partner_topics = merge([for name, partner in local.partners.partners : { for t in partner.topics : "${name}:${t}" => { name = name, topic = t } }]...)
}
"""

_MAIN = """module "names" {
  source = "../../modules/naming"
  base   = local.base
  words  = concat(local.readers, ["z", "a"])
}

module "team" {
  source   = "../../modules/team"
  for_each = var.teams
  name     = each.key
  base     = module.names.base
  groups   = each.value.groups
  topics   = toset(each.value.topics)
  strict   = var.strict
  hosts    = each.value.host == null ? ["*"] : [each.value.host, "127.0.0.1"]
}

resource "kafka_topic" "audit" {
  name               = "${local.base}.audit"
  replication_factor = var.replicas
  partitions         = length(local.grants)
}

# who writes what
resource "kafka_acl" "grants" {
  for_each = {
    for pair in flatten([for grant in local.grants : [for o in grant.operations : { id = "${grant.key}#${o}", grant = grant, operation = o }]]) :
    pair.id => merge(pair.grant, { operation = pair.operation })
  }
  resource_name       = each.value.topic
  resource_type       = "Topic"
  acl_principal       = each.value.principal
  acl_host            = each.value.host
  acl_operation       = each.value.operation
  acl_permission_type = "Allow"
}

resource "kafka_acl" "legacy" {
  count               = sum(concat([0], values(local.legacy)))
  resource_name       = format("%s.legacy-%03d", local.base, count.index)
  resource_type       = "Topic"
  acl_principal       = "User:${element(keys(local.legacy), count.index)}"
  acl_host            = cidrhost("10.20.0.0/16", count.index + 1)
  acl_operation       = count.index % 2 == 0 ? "Read" : "Write"
  acl_permission_type = title(lower("ALLOW"))
  resource_pattern_type_filter = "Prefixed"
}

resource "kafka_acl" "audit" {
  count               = var.strict ? 1 : 0
  resource_name       = kafka_topic.audit.name
  resource_type       = "Topic"
  acl_principal       = "User:auditor"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"

  lifecycle {
    prevent_destroy = true
  }
}

resource "confluent_kafka_acl" "shared" {
  for_each = { for n, row in local.rows : "${n}-${row.principal}" => row if !startswith(row.topic, "private") }
  kafka_cluster {
    id = confluent_kafka_cluster.main.id
  }
  resource_type = "TOPIC"
  resource_name = replace(each.value.topic, "/^shared[.]/", "${local.base}.common.")
  pattern_type  = "LITERAL"
  principal     = each.value.principal
  host          = "*"
  operation     = upper(replace(each.value.operation, "/([a-z])([A-Z])/", "$${1}_$${2}"))
  permission    = var.strict ? "ALLOW" : "DENY"
  rest_endpoint = confluent_kafka_cluster.main.rest_endpoint
  credentials {
    key    = var.replicas
    secret = "not shown"
  }
}

resource "confluent_kafka_cluster" "main" {
  display_name = "main-${random_id.this.hex}"
}

resource "random_id" "this" {
  byte_length = 4
}
"""

_PARTNERS = [
    """resource "kafka_acl" "partners" {
  for_each            = local.partner_topics
  resource_name       = "${var.prefix}.${each.value.topic}"
  resource_type       = "Topic"
  acl_principal       = "User:${each.value.name}"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}
""",
    """resource "kafka_acl" "partners" {
  for_each            = toset(keys(local.partner_topics))
  resource_name       = join(".", [var.prefix, local.partner_topics[each.key].topic])
  resource_type       = "Topic"
  acl_principal       = "User:${split(":", each.value)[0]}"
  acl_host            = try(local.partner_topics[each.key].host, "*")
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}
""",
    """resource "kafka_acl" "partners" {
  count = length(local.partner_topics)
  resource_name = <<-EOT
    %{~ for word in [var.prefix, values(local.partner_topics)[count.index].topic] ~}
    ${word}%{ if word == var.prefix }.%{ endif ~}
    %{~ endfor ~}
  EOT
  resource_type       = "Topic"
  acl_principal       = "User:${values(local.partner_topics)[count.index].name}"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}
""",
    """resource "kafka_acl" "partners" {
  for_each = {
    for pair in setproduct(keys(local.partners.partners), ["Read", "Describe"]) : "${pair[0]}-${pair[1]}" => {
      name      = pair[0]
      operation = pair[1]
    }
  }
  resource_name       = "${var.prefix}.${local.partners.partners[each.value.name].topics[0]}"
  resource_type       = "Topic"
  acl_principal       = "User:${each.value["name"]}"
  acl_host            = "*"
  acl_operation       = each.value.operation
  acl_permission_type = "Allow"
}
""",
]

_NAMING = """variable "base" { type = string }
variable "words" {
  type = set(string)
}
locals { sorted = sort(tolist(var.words)) }
output "base" { value = trimsuffix(var.base, ".") }
output "first" {
  value = local.sorted[0]
}
"""

_TEAM = """variable "name" {}
variable "base" {}
variable "groups" { type = list(string) }
variable "topics" { type = set(string) }
variable "hosts" { type = list(string) }
variable "strict" { type = bool }
variable "operations" {
  type    = map(string)
  default = { produce = "Write", check = "Describe" }
}

locals {
  principal = startswith(var.name, "team-") ? "User:${var.name}" : "User:x-${var.name}"
}

module "access" {
  source    = "../access"
  count     = length(var.topics) > 0 ? 1 : 0
  principal = local.principal
  rights = {
    for pair in setproduct(var.topics, values(var.operations), var.hosts) : join("|", pair) => {
      name = "${var.base}.${pair[0]}", operation = pair[1], host = pair[2]
    }
  }
}

resource "kafka_acl" "groups" {
  for_each            = var.strict ? toset(var.groups) : toset([])
  resource_name       = "${var.name}-${each.value}"
  resource_type       = "Group"
  acl_principal       = one(module.access[*].principal)
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}

resource "kafka_acl" "transactions" {
  resource_name                = "${var.name}-"
  resource_type                = "TransactionalID"
  resource_pattern_type_filter = "Prefixed"
  acl_principal                = local.principal
  acl_host                     = coalesce(one([for h in var.hosts : h if h != "*" && h != "127.0.0.1"]), "*")
  acl_operation                = "All"
  acl_permission_type          = "Allow"
}
"""

_ACCESS = """variable "principal" {
  type = string
}
variable "rights" {
  type = map(object({ name = string, operation = string, host = optional(string, "*"), deny = optional(bool, false) }))
}
resource "kafka_acl" "this" {
  for_each            = var.rights
  resource_name       = each.value.name
  resource_type       = "Topic"
  acl_principal       = var.principal
  acl_host            = each.value.host
  acl_operation       = each.value.operation
  acl_permission_type = each.value.deny ? "Deny" : "Allow"
}
output "principal" {
  value = distinct([for acl in kafka_acl.this : acl.acl_principal])[0]
}
"""


def render(estate: "Estate") -> dict[str, str]:
    """Return the files of the repository, by path."""
    files = {
        "README.md": "Access to Kafka.\n",
        "modules/naming/main.tf": _NAMING,
        "modules/team/main.tf": _TEAM,
        "modules/access/main.tf": _ACCESS,
        "data/shared.csv": "principal,topic,operation\n" + "".join(f"{','.join(row)}\n" for row in estate.shared),
        "data/partners.yaml": _partners(estate),
    }
    for root, teams in estate.teams.items():
        home = f"clusters/{root}"
        files[f"{home}/variables.tf"] = _VARIABLES
        files[f"{home}/locals.tf"] = _LOCALS.replace("%(root)s", root)
        files[f"{home}/main.tf"] = _MAIN
        files[f"{home}/partners.tf"] = _PARTNERS[estate.style]
        files[f"{home}/terraform.tfvars"] = _settings(estate)
        half = len(teams) // 2
        if estate.style % 2:
            files[f"{home}/teams.auto.tfvars.json"] = json.dumps(
                {"teams": {team.name: _json(team) for team in teams}}, indent=1
            )
        else:
            files[f"{home}/teams.auto.tfvars"] = (
                "teams = {\n" + "".join(map(_hcl, [*teams[half:], *teams[:half]])) + "}\n"
            )
        if root == "stage":
            files[f"{home}/extra.tf.json"] = json.dumps(_EXTRA, indent=2)
            if not estate.strict:
                files[f"{home}/audit_override.tf"] = (
                    'resource "kafka_acl" "audit" {\n  count = 2\n  acl_host = "10.9.9.${count.index}"\n}\n'
                )
    return files


_EXTRA = {
    "//": "made by a machine",
    "locals": {"machines": ["m1", "m2"]},
    "resource": {
        "kafka_acl": {
            "machines": {
                "for_each": "${toset(local.machines)}",
                "resource_name": "${local.base}.${each.value}",
                "resource_type": "Topic",
                "acl_principal": "User:${each.key}",
                "acl_host": "*",
                "acl_operation": "All",
                "acl_permission_type": "Deny",
            }
        }
    },
}


def _settings(estate: "Estate") -> str:
    strict = "true" if estate.strict else "false"
    return f'prefix   = "{estate.prefix}"\nstrict   = {strict}\nreplicas = {estate.replicas} # of each topic\n'


def _partners(estate: "Estate") -> str:
    lines = ["# partners, by name", "partners:"]
    for name, topics in estate.partners.items():
        lines += [f"  {name}:", "    topics:", *(f"    - {topic}" for topic in topics)]
    return "\n".join(lines) + "\n"


def _json(team: "Team") -> dict[str, object]:
    access = {"reader": team.is_reader, "legacy": team.legacy}
    return {"topics": team.topics, "groups": team.groups, "host": team.host, "access": access}


def _hcl(team: "Team") -> str:
    lines = [f'  "{team.name}" = {{', f"    topics = {json.dumps(team.topics)}"]
    if team.groups:
        lines.append(f"    groups = {json.dumps(team.groups)}")
    if team.host is not None:
        lines.append(f'    host = "{team.host}"')
    if team.is_reader or team.legacy:
        lines.append(f"    access = {{ reader = {json.dumps(team.is_reader)}, legacy = {team.legacy} }}")
    return "\n".join([*lines, "  }"]) + "\n"


def broken(files: dict[str, str], draw: random.Random) -> tuple[str, dict[str, str]]:
    """Return what is wrong, and the files with that mistake."""
    name = draw.choice(sorted(_MISTAKES))
    return name, _MISTAKES[name](dict(files))


def _replaced(path: str, old: str, new: str) -> Callable[[dict[str, str]], dict[str, str]]:
    def break_it(files: dict[str, str]) -> dict[str, str]:
        assert old in files[path], (path, old)
        files[path] = files[path].replace(old, new, 1)
        return files

    return break_it


def _added(path: str, text: str) -> Callable[[dict[str, str]], dict[str, str]]:
    return lambda files: {**files, path: files.get(path, "") + text}


_PROD = "clusters/prod"
_RULE = """
resource "kafka_acl" "new" {
  resource_name = %s
  resource_type = "Topic"
  acl_principal = "User:new"
  acl_host = "*"
  acl_operation = "Read"
  acl_permission_type = "Allow"
}
"""

_MISTAKES: dict[str, Callable[[dict[str, str]], dict[str, str]]] = {
    "a brace is missing": _replaced("modules/access/main.tf", 'variable "principal" {', 'variable "principal"'),
    "a quote is missing": _replaced(f"{_PROD}/main.tf", '"kafka_acl" "legacy"', '"kafka_acl" "legacy'),
    "a line is cut": _replaced(f"{_PROD}/locals.tf", "by_host        = {", "by_host        ="),
    "two attributes on a line": _replaced(f"{_PROD}/variables.tf", "type    = string\n", "type    = string "),
    "an expression over two lines": _replaced("modules/team/main.tf", "? 1 : 0", "? 1\n : 0"),
    "a variable is not declared": _added(f"{_PROD}/new.tf", _RULE % "var.missing"),
    "a local is not declared": _added(f"{_PROD}/new.tf", _RULE % "local.missing"),
    "a resource is not declared": _added(f"{_PROD}/new.tf", _RULE % "kafka_topic.missing.name"),
    "a variable has no value": _added(f"{_PROD}/new.tf", 'variable "late" {}\n' + _RULE % '"x.${var.late}"'),
    "a data source": _added(f"{_PROD}/new.tf", 'data "aws_x" "y" {}\n' + _RULE % "data.aws_x.y.name"),
    "a computed attribute": _added(f"{_PROD}/new.tf", _RULE % "kafka_topic.audit.id"),
    "a cycle of locals": _added(
        f"{_PROD}/new.tf", "locals {\n  a1 = local.b1\n  b1 = [local.a1]\n}\n" + _RULE % "local.a1"
    ),
    "a cycle through a module": _added(
        f"{_PROD}/new.tf",
        'module "loop" {\n  source = "../../modules/naming"\n  base = module.loop.base\n  words = []\n}\n'
        + _RULE % "module.loop.base",
    ),
    "an unknown function": _added(f"{_PROD}/new.tf", _RULE % 'camelcase("x")'),
    "an argument is missing": _replaced(f"{_PROD}/main.tf", "  base     = module.names.base\n", ""),
    "an argument too many": _replaced(
        f"{_PROD}/main.tf", "  strict   = var.strict\n", "  strict   = var.strict\n  color = 1\n"
    ),
    "a list in for_each": _replaced("modules/team/main.tf", "var.strict ? toset(var.groups) : toset([])", "var.groups"),
    "a wrong type": _added(f"{_PROD}/z.auto.tfvars", 'teams = "many"\n'),
    "a file is missing": lambda files: {path: text for path, text in files.items() if path != "data/shared.csv"},
    "an index too large": _added(f"{_PROD}/new.tf", _RULE % '["a"][1]'),
    "an attribute that is not there": _added(f"{_PROD}/new.tf", _RULE % '{ a = "x" }.b'),
    "two resources of one name": _added(f"{_PROD}/new.tf", _RULE % '"x"' + _RULE % '"y"'),
    "a null name": _added(f"{_PROD}/new.tf", _RULE % "null"),
    "two keys that are the same": _added(f"{_PROD}/new.tf", _RULE % '{ for x in ["a", "a"] : x => x }["a"]'),
    "no such module": _added(f"{_PROD}/new.tf", 'module "gone" {\n  source = "../../modules/gone"\n}\n'),
    "no such output": _added(f"{_PROD}/new.tf", _RULE % "module.names.second"),
    "an unknown count": _added(
        f"{_PROD}/new.tf", _RULE.replace("{\n", "{\n  count = length(kafka_topic.audit.id)\n", 1) % '"x"'
    ),
    "YAML is wrong": _added("data/partners.yaml", "  x: [\n"),
}
