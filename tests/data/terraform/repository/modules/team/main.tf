variable "name" {}
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
