resource "kafka_acl" "partners" {
  for_each            = local.partner_topics
  resource_name       = "${var.prefix}.${each.value.topic}"
  resource_type       = "Topic"
  acl_principal       = "User:${each.value.name}"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}
