"""An index that shifts (Mongey/terraform-provider-kafka)."""

from tests.support.builders.acls import acl
from tests.support.planning.estate import Estate, log_with

_MAIN = """\
variable "grants" {
  default = [%s]
}
locals {
  pairs = flatten([
    for grant in var.grants : [for name in grant.names : { name = name, user = grant.user }]
  ])
}
resource "kafka_acl" "reads" {
  count                        = length(local.pairs)
  resource_name                = local.pairs[count.index].name
  resource_type                = "Topic"
  resource_pattern_type_filter = "Literal"
  acl_principal                = "User:CN=${local.pairs[count.index].user}"
  acl_host                     = "*"
  acl_operation                = "Read"
  acl_permission_type          = "Allow"
}
"""
SHOP = ("shop", ("orders", "payments"))
AUDIT = ("audit", ("orders", "users"))
NEW = ("new", ("returns",))


def main(*grants):
    texts = [f'{{ user = "{user}", names = [{", ".join(map(repr, names))}] }}' for user, names in grants]
    return (_MAIN % ", ".join(texts)).replace("'", '"')


def rules(*grants):
    return {acl(name, f"User:CN={user}") for user, names in grants for name in names}


def test_terraform_kafka_404_a_shifted_index_is_no_step(tmp_path):
    """With `count` over a list, a new entry before others replaced all after it: each ACL deleted, then created."""
    estate = Estate(tmp_path / "source", log_with(tmp_path / "log", []))
    estate.wants_file("main.tf", main(SHOP, AUDIT))
    assert estate.bring().added() == rules(SHOP, AUDIT)
    estate.wants_file("main.tf", main(AUDIT, SHOP))
    assert estate.bring().steps == ()
    estate.wants_file("main.tf", main(NEW, AUDIT, SHOP))
    assert estate.bring().steps == (("ADD", acl("returns", "User:CN=new")),)
    estate.wants_file("main.tf", main(AUDIT, NEW))
    planned = estate.bring()
    assert (planned.added(), planned.removed()) == (set(), rules(SHOP))
    assert estate.rules() == rules(AUDIT, NEW)
