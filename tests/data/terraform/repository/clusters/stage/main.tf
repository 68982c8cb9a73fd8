module "names" {
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
