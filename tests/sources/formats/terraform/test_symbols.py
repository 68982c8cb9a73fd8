"""Values that Terraform knows after apply only: principals, names and hosts that are symbols."""

from pathlib import Path

import pytest

from aclog.authorizer.acl import StandardAcl, is_symbolic
from aclog.authorizer.symbols import symbols_of
from aclog.sources.choice import AclsSource
from tests.support.sources.files_of_rules import refused, write_files

DECLARED = """resource "confluent_service_account" "app" { display_name = "app" }
resource "confluent_service_account" "many" {
  count        = 2
  display_name = "many"
}
resource "confluent_service_account" "by" {
  for_each     = toset(["a b", "c"])
  display_name = each.key
}
data "confluent_service_account" "old" { display_name = "old" }
data "external" "users" {}
variable "owner" {}
locals { app = confluent_service_account.app.id }
module "inner" {
  source  = "./inner"
  account = confluent_service_account.app
}
"""
INNER = """variable "account" { type = object({ id = string }) }
resource "random_id" "r" { byte_length = 4 }
output "id" { value = var.account.id }
output "own" { value = random_id.r.hex }
"""


def rule(*, principal: str = '"User:a"', name: str = '"t"', host: str = '"*"', pattern: str = "LITERAL") -> str:
    return f"""resource "confluent_kafka_acl" "rule" {{
  resource_type = "TOPIC"
  resource_name = {name}
  pattern_type  = "{pattern}"
  principal     = {principal}
  host          = {host}
  operation     = "READ"
  permission    = "ALLOW"
}}
"""


def the_rule(directory: Path, text: str) -> StandardAcl:
    files = {"main.tf": DECLARED, "rules.tf": text, "inner/main.tf": INNER}
    [only] = AclsSource(str(write_files(directory, files))).image().acls
    return only.acl


@pytest.mark.parametrize(
    ("expression", "symbol"),
    [
        ('"User:${confluent_service_account.app.id}"', "User:${confluent_service_account.app.id}"),
        (
            'format("User:%s", confluent_service_account.app.id)',
            '${format("User:%s", confluent_service_account.app.id)}',
        ),
        ('"User:${local.app}"', "User:${confluent_service_account.app.id}"),
        ('"User:${confluent_service_account.many[1].id}"', "User:${confluent_service_account.many[1].id}"),
        ('"User:${confluent_service_account.many.*.id[0]}"', "User:${confluent_service_account.many[0].id}"),
        ('"User:${confluent_service_account.by["a b"].id}"', 'User:${confluent_service_account.by["a b"].id}'),
        ('"User:${data.confluent_service_account.old.id}"', "User:${data.confluent_service_account.old.id}"),
        ('"User:${data.external.users.result["x"]}"', 'User:${data.external.users.result["x"]}'),
        ('"User:${module.inner.id}"', "User:${confluent_service_account.app.id}"),
        ('"User:${module.inner.own}"', "User:${module.inner.random_id.r.hex}"),
        ('"User:${lower(confluent_service_account.app.id)}"', "User:${lower(confluent_service_account.app.id)}"),
        ('join(":", ["User", local.app])', '${join(":", ["User", confluent_service_account.app.id])}'),
        ("var.owner", "${var.owner}"),
        ('"User:${var.owner}-x"', "User:${var.owner}-x"),
        ('true ? "User:${local.app}" : "User:b"', "User:${confluent_service_account.app.id}"),
        ('"${"User:"}${[for a in [local.app] : a][0]}"', "User:${confluent_service_account.app.id}"),
        ('"User:$${x}${local.app}"', "User:$${x}${confluent_service_account.app.id}"),
    ],
)
def test_a_principal_known_after_apply_is_a_symbol(tmp_path: Path, expression: str, symbol: str) -> None:
    assert symbols_of(the_rule(tmp_path, rule(principal=expression))) == [symbol]


@pytest.mark.parametrize("expression", ['"x-${local.app}"', "local.app", '"${local.app}.x"', "upper(local.app)"])
def test_names_and_hosts_may_be_symbols(tmp_path: Path, expression: str) -> None:
    for text in (rule(name=expression), rule(name=expression, pattern="PREFIXED"), rule(host=expression)):
        assert is_symbolic(the_rule(tmp_path, text))


def test_different_values_are_different_symbols(tmp_path: Path) -> None:
    parts = (
        "confluent_service_account.app.id",
        "confluent_service_account.many[0].id",
        "var.owner",
        "module.inner.own",
    )
    texts = [f'"User:${{{part}}}"' for part in parts]
    texts += [f'"User:${{{part}}}-x"' for part in parts]
    texts += ['"User:$${var.owner}"', '"User:var.owner"', "var.owner"]
    principals = [the_rule(tmp_path, rule(principal=text)).principal for text in texts]
    assert len(set(principals)) == len(texts)
    again = [the_rule(tmp_path, f"# moved\n\n{rule(principal=text)}").principal for text in texts]
    assert again == principals


@pytest.mark.parametrize(
    "expression",
    [
        'join(",", [for k, v in confluent_service_account.app : k])',
        'var.owner == "x" ? "User:a" : "User:b"',
        "uuid()",
        '"User:${sha256("${timestamp()}")}"',
        "confluent_service_account.app.id + 1",
        "nonsense(var.owner)",
        '"%{ for x in var.owner }${x}%{ endfor }"',
    ],
)
def test_what_has_no_symbol_is_refused(tmp_path: Path, expression: str) -> None:
    files = {"main.tf": DECLARED, "rules.tf": rule(principal=expression), "inner/main.tf": INNER}
    assert "rules.tf:5: " in refused(write_files(tmp_path, files))


def test_a_sensitive_text_is_in_no_symbol(tmp_path: Path) -> None:
    secret = 'variable "s" {\n  default   = "hunter2"\n  sensitive = true\n}\n'
    for expression in ('"User:${var.s}${local.app}"', '"User:${format("%s%s", var.s, local.app)}"'):
        files = {"main.tf": DECLARED + secret, "rules.tf": rule(principal=expression), "inner/main.tf": INNER}
        text = refused(write_files(tmp_path, files))
        assert "rules.tf:5: principal depends on" in text
        assert "hunter2" not in text


def test_a_text_with_the_mark_of_symbols_is_refused(tmp_path: Path) -> None:
    files = {"main.tf": rule(principal='"User:\ufdd0$${x}"')}
    assert "main.tf:5: principal has U+FDD0 before ${" in refused(write_files(tmp_path, files))


# what the same text denotes


_ACCOUNT = 'data "confluent_service_account" "d" { display_name = "reader" }\n'
_DATA = rule(principal='"User:${data.confluent_service_account.d.id}"')


@pytest.mark.parametrize(
    ("block", "is_equal"),
    [
        (f"\n# moved\n{_ACCOUNT}", True),
        ('locals { n = "read" }\n' + _ACCOUNT.replace('"reader"', '"${local.n}er"'), True),
        (_ACCOUNT.replace("reader", "admin"), False),
        (_ACCOUNT.replace("display_name", "id"), False),
        ('locals { n = "read" }\n' + _ACCOUNT.replace('"reader"', '"${local.n}"'), False),
        (_ACCOUNT.replace("{ ", "{\n").replace("}", "\nenvironment {\n  id = 1\n}\n}"), False),
        (_ACCOUNT.replace('"reader"', "nowhere.at.all"), False),
    ],
)
def test_a_data_source_of_other_arguments_is_another_symbol(tmp_path: Path, block: str, *, is_equal: bool) -> None:
    def read(directory: Path, text: str) -> StandardAcl:
        [only] = AclsSource(str(write_files(directory, {"main.tf": text + _DATA}))).image().acls
        return only.acl

    one, two = read(tmp_path / "one", _ACCOUNT), read(tmp_path / "two", block)
    assert (one == two) == is_equal
    assert symbols_of(one) == symbols_of(two) == ["User:${data.confluent_service_account.d.id}"]


@pytest.mark.parametrize("owner", ["confluent_service_account.app.id", "data.external.users.result.x", "var.owner"])
def test_symbols_of_two_root_modules_are_distinct(tmp_path: Path, owner: str) -> None:
    text = DECLARED + rule(principal='"User:${' + owner + '}"')
    files = {f"{root}/{name}": each for root in "ab" for name, each in (("m.tf", text), ("inner/i.tf", INNER))}
    found = AclsSource(str(write_files(tmp_path, files))).image().acls
    assert len({each.acl.principal for each in found}) == 2
    assert {shown for each in found for shown in symbols_of(each.acl)} == {"User:${" + owner + "}"}
