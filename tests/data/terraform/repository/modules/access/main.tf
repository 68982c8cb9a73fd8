variable "principal" {
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
