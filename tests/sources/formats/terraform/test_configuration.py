"""Terraform configurations: modules, values of variables, what is unknown, what is refused and where."""

import hashlib
from pathlib import Path

import pytest

from aclog.metalog.errors import without_marks
from aclog.sources.formats.terraform import evaluation
from tests.support.sources.files_of_rules import read_rules, refused, write_files


def acl(name: str = "a", *, principal: str = '"User:a"', resource: str = '"t"', more: str = "") -> str:
    """Return a resource that makes a rule."""
    return f"""resource "kafka_acl" "{name}" {{
  {more}
  resource_type       = "Topic"
  resource_name       = {resource}
  acl_principal       = {principal}
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}}
"""


def rules(directory: Path, files: dict[str, str]) -> dict[str, list[int]]:
    return read_rules(write_files(directory, files)).rules


def message(directory: Path, files: dict[str, str]) -> str:
    return refused(write_files(directory, files)).removeprefix(f"{directory}/")


def test_both_providers_and_all_their_words(tmp_path: Path) -> None:
    files = {
        "main.tf": """resource "kafka_acl" "all" {
  resource_name                = "kafka-cluster"
  resource_type                = "Cluster"
  resource_pattern_type_filter = "Literal"
  acl_principal                = "User:CN=x,O=y"
  acl_host                     = "10.0.0.1"
  acl_operation                = "IdempotentWrite"
  acl_permission_type          = "Deny"
}
resource "confluent_kafka_acl" "one" {
  kafka_cluster { id = confluent_kafka_cluster.c.id }
  resource_type = "TRANSACTIONAL_ID"
  resource_name = "tx-"
  pattern_type  = "PREFIXED"
  principal     = "User:sa-1"
  host          = "*"
  operation     = "DESCRIBE"
  permission    = "ALLOW"
  credentials {
    key    = confluent_api_key.k.id
    secret = "s3cret"
  }
}
resource "kafka_topic" "orders" {}
data "aws_region" "here" {}
"""
    }
    found = read_rules(write_files(tmp_path, files))
    assert found.rules == {
        "DENY IDEMPOTENT_WRITE CLUSTER kafka-cluster to User:CN=x,O=y from 10.0.0.1": [1],
        "ALLOW DESCRIBE TRANSACTIONAL_ID tx-* to User:sa-1": [10],
    }
    assert found.ignored == {"kafka_topic": 1, "aws_region": 1}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (acl().replace('"Read"', '"READ"'), "main.tf:7: acl_operation 'READ' is not one of All, Read,"),
        (acl().replace('"Topic"', '"Any"'), "main.tf:3: resource_type 'Any' is not one of"),
        (acl(more="color = 1"), "main.tf:2: kafka_acl has no attribute color"),
        (acl(more="settings {\n}"), "main.tf:2: kafka_acl has no block settings"),
        (acl(more='dynamic "settings" {\n}'), "main.tf:2: kafka_acl has no block settings"),
        (acl(resource="null"), "main.tf:4: resource_name is null"),
        (acl().replace('  acl_host            = "*"\n', ""), "main.tf:1: acl_host is missing"),
        (acl(principal='"nobody"'), "main.tf:1: no Kafka accepts this rule"),
        (acl(resource="[1]"), "main.tf:4: resource_name: a string is required"),
        (acl(more="for_each = [1]"), "main.tf:2: for_each is a tuple: expected a map or a set of strings"),
        (acl(more="count = -1"), "main.tf:2: count must be a whole number"),
        (acl(more='for_each = toset(["a"])\n count = 1'), "main.tf:2: count and for_each exclude each other"),
        (acl(resource="each.key"), "main.tf:4: each is known in a block with for_each only"),
        (acl(resource="self.x"), "main.tf:4: self: not understood here"),
        (acl(resource="provider::x::y(1)"), "main.tf:4: provider::x::y(): no such function"),
        (acl(resource="timestamp()"), "main.tf:4: resource_name depends on timestamp(), which differs"),
        ("resource {\n}\n", "main.tf:1: a block resource has 2 labels"),
        ("what {\n}\n", "main.tf:1: what is not a kind of block"),
        ("a = 1\n", "main.tf:1: a: no attribute is expected"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, what: str) -> None:
    assert message(tmp_path, {"main.tf": text}).startswith(what)


def test_what_only_terraform_learns_is_refused_where_it_reaches_a_rule(tmp_path: Path) -> None:
    base = """variable "v" {}
resource "confluent_service_account" "app" {
  display_name = "app"
  owner        = data.x.y.z
}
data "x" "y" {}
"""
    fine = acl(resource="confluent_service_account.app.display_name")
    assert rules(tmp_path, {"main.tf": base, "rules.tf": fine}) == {"ALLOW READ TOPIC app to User:a": [1]}
    for value, what in (
        ('"User:${confluent_service_account.app.id}"', "confluent_service_account.app.id, which only Terraform knows"),
        ("confluent_service_account.app.owner", "data.x.y, a data source"),
        ("var.v", "var.v, which has no value"),
        ('true ? var.v : "x"', "var.v, which has no value"),
        ('join(",", [for k, v in confluent_service_account.app : k])', "confluent_service_account.app, of which"),
    ):
        for word, name in (("Topic", "resource_type"), ("Read", "acl_operation"), ("Allow", "acl_permission_type")):
            told = message(tmp_path, {"rules.tf": acl().replace(f'"{word}"', value)})
            assert f": {name} depends on " in told
            assert what in told
    told = message(tmp_path, {"rules.tf": acl(principal='join(",", [for k, v in confluent_service_account.app : k])')})
    assert told.startswith("rules.tf:5: acl_principal depends on confluent_service_account.app, of which")
    told = message(tmp_path, {"rules.tf": acl(more="for_each = toset([var.v])")})
    assert told.startswith("rules.tf:2: for_each depends on var.v, which has no value (at ")


def test_a_sensitive_value_is_not_shown(tmp_path: Path) -> None:
    start = 'variable "s" {\n  sensitive = true\n  default   = "hunter2"\n}\n'
    for expression in ('regex("[", var.s)', "tonumber(var.s)", "var.s.x", "var.s[0]", "parseint(var.s, 10)", "-var.s"):
        told = message(tmp_path, {"main.tf": start + acl(resource=expression)})
        assert "main.tf:8" in told
        assert "hunter2" not in told
    told = message(tmp_path, {"main.tf": start + acl().replace('"Topic"', "var.s")})
    assert told == "main.tf:7: resource_type is not one of Topic, Group, Cluster, TransactionalID, DelegationToken"


@pytest.mark.parametrize(
    "expression",
    [
        'format("%1000000000s", "a")',
        'format("%.1000000000f", 1.5)',
        'format("%[99999999999]s", "a")',
        "parseint(%s, 16)",
    ],
)
def test_numbers_that_would_take_forever_are_refused(tmp_path: Path, expression: str) -> None:
    told = message(tmp_path, {"main.tf": acl(resource=expression.replace("(%s", f'("{"f" * 100_000}"'))})
    assert "more than" in told


def test_values_of_variables_come_from_files_in_terraforms_order(tmp_path: Path) -> None:
    files = {"main.tf": 'variable "v" { default = "default" }\n' + acl(resource="var.v")}
    expected = "default"
    for name, text in (
        ("", ""),
        ("terraform.tfvars", 'v = "one"\n'),
        ("terraform.tfvars.json", '{"v": "two"}'),
        ("a.auto.tfvars", 'v = "three"\n'),
        ("b.auto.tfvars.json", '{"v": "four"}'),
        ("c.auto.tfvars", 'v = "five"\nother = 1\n'),
        ("other.tfvars", 'v = "not read"\n'),
    ):
        if name:
            files[name] = text
            expected = text.split('"')[1] if name.endswith(".tfvars") else text.split('"')[3]
        wanted = "five" if name == "other.tfvars" else expected
        assert rules(tmp_path, files) == {f"ALLOW READ TOPIC {wanted} to User:a": [2]}


def test_types_defaults_and_null(tmp_path: Path) -> None:
    module = """variable "o" {
  type = object({
    a = optional(string, "x")
    b = optional(list(object({ c = optional(number, 7) })), [{}])
    d = optional(string)
  })
}
variable "n" {
  default  = "kept"
  nullable = false
}
variable "m" { default = "lost" }
output "text" {
  value = "${var.o.a}.${var.o.b[0].c}.${var.o.d == null}.${var.n}.${var.m == null}"
}
"""
    main = 'module "m" {\n  source = "./m"\n  o = {}\n  n = null\n  m = null\n}\n' + acl(resource="module.m.text")
    found = rules(tmp_path, {"main.tf": main, "m/m.tf": module})
    assert found == {"ALLOW READ TOPIC x.7.true.kept.true to User:a": [7]}
    told = message(tmp_path, {"main.tf": main.replace("o = {}", "o = { b = 1 }"), "m/m.tf": module})
    assert told.startswith("main.tf:3: var.o: a list of object is required, and this is a number")


def test_a_module_that_is_not_in_the_tree_is_unread_and_its_outputs_are_symbols(tmp_path: Path) -> None:
    call = 'module "m" {\n  source   = "terraform-aws-modules/vpc/aws"\n  for_each = nowhere.x\n}\n'
    text = acl() + acl("b", principal='"User:${module.m["x"].id}"') + call
    found = read_rules(write_files(tmp_path, {"main.tf": text}))
    assert {without_marks(each) for each in found.rules} == {
        "ALLOW READ TOPIC t to User:a",
        'ALLOW READ TOPIC t to User:${module.m["x"].id}',
    }
    assert [(each.label, each.line) for each in found.unread] == [("terraform:module", text.count("\n") - 3)]
    assert found.unread[0].reason.startswith("module m: 'terraform-aws-modules/vpc/aws' is not in this tree")


def test_modules_by_path_vendored_and_given(tmp_path: Path) -> None:
    call = 'module "m" {\n  source = "git::https://example.com/acls.git"\n}\n'
    write_files(tmp_path, {"live/main.tf": call})
    assert f"{tmp_path}/live/main.tf:1: module m: 'git::https://example.com/acls.git' is not in this tree" in refused(
        tmp_path / "live/main.tf"
    )
    manifest = (
        '{"Modules":[{"Key":"","Source":"","Dir":"."},{"Key":"m","Source":"x","Dir":".terraform/modules/m/sub"}]}'
    )
    files = {"live/.terraform/modules/modules.json": manifest, "live/.terraform/modules/m/sub/a.tf": acl()}
    assert rules(tmp_path, files) == {"ALLOW READ TOPIC t to User:a": [1]}


def test_a_root_module_is_one_that_no_other_calls(tmp_path: Path) -> None:
    files = {
        "a/main.tf": 'module "m" {\n  source = "../m"\n  count = 2\n  n = count.index\n}\n',
        "b/main.tf": acl(resource='"b"'),
        "m/main.tf": 'variable "n" {}\n' + acl(resource='"m${var.n}"'),
    }
    found = rules(tmp_path, files)
    assert found == {
        "ALLOW READ TOPIC m0 to User:a": [2],
        "ALLOW READ TOPIC m1 to User:a": [2],
        "ALLOW READ TOPIC b to User:a": [1],
    }


def test_files_of_opentofu(tmp_path: Path) -> None:
    files = {"a.tf": acl(resource='"terraform"'), "b.tofu": acl("b", resource='"b"')}
    assert list(rules(tmp_path, files)) == ["ALLOW READ TOPIC terraform to User:a", "ALLOW READ TOPIC b to User:a"]
    told = message(tmp_path, {"b.tf": acl("b")})
    assert told == "b.tofu: OpenTofu reads it in place of b.tf, Terraform does not: expected one of the two"
    (tmp_path / "b.tf").unlink()
    told = message(tmp_path, {"b.tofu": acl("b", more="lifecycle {\n enabled = false\n}")})
    assert told == "b.tofu:3: lifecycle.enabled is not understood: use count"


def test_one_file_stands_for_its_own_blocks(tmp_path: Path) -> None:
    files = {
        "one.tf": acl(resource="local.name"),
        "two.tf": 'locals {\n  name = "n"\n}\n' + acl("b", resource='"other"'),
    }
    write_files(tmp_path, files)
    assert read_rules(tmp_path / "one.tf").rules == {"ALLOW READ TOPIC n to User:a": [1]}


def test_json_syntax_and_overrides(tmp_path: Path) -> None:
    files = {
        "main.tf.json": """{
  "//": "made by a machine",
  "locals": {"names": ["x", "y"], "plain": "$${no}"},
  "resource": {
    "kafka_acl": {
      "a": {
        "for_each": "${toset(local.names)}",
        "resource_type": "Topic", "resource_name": "n-${each.key}", "acl_principal": "User:a",
        "acl_host": "*", "acl_operation": "Read", "acl_permission_type": "Allow"
      }
    }
  }
}
""",
        "x_override.tf": 'resource "kafka_acl" "a" {\n  acl_operation = "Write"\n}\n',
        "override.tf": 'resource "kafka_acl" "a" {\n  acl_operation = "Create"\n  acl_host = "1.1.1.1"\n}\n',
    }
    assert rules(tmp_path, files) == {
        "ALLOW WRITE TOPIC n-x to User:a from 1.1.1.1": [6],
        "ALLOW WRITE TOPIC n-y to User:a from 1.1.1.1": [6],
    }
    assert message(tmp_path, {"y_override.tf": acl("gone")}).startswith(
        "y_override.tf:1: overrides resource kafka_acl gone"
    )


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"\xef\xbb\xbf# BOM\r\n" + acl().replace("\n", "\r\n").encode(), None),
        (b'locals {\n  a = "\xff"\n}\n', "main.tf:2: byte 16 is not UTF-8"),
        (b"locals {\n  a = 1\0\n}\n", "main.tf:2: a zero byte"),
        (b"\x7fELF\x01\x02" + bytes(range(1, 32)), "main.tf:1: not HCL"),
        (b"a = " + b"[" * 5_000 + b"]" * 5_000, "main.tf:1: nested more than 200 deep"),
        (b"a = " + b"(" * 300 + b"1" + b")" * 300, "main.tf:1: nested more than 200 deep"),
        (b"a {\n" * 300 + b"}\n" * 300, "main.tf:51: blocks nested more than 50 deep"),
        (b'a = "${' * 300, "main.tf:1: not HCL"),
        (b"x = <<E\nnever closed\n", "main.tf:3: not HCL"),
    ],
)
def test_hostile_bytes(tmp_path: Path, content: bytes, what: str | None) -> None:
    (tmp_path / "main.tf").write_bytes(content)
    if what is None:
        assert read_rules(tmp_path).rules == {"ALLOW READ TOPIC t to User:a": [2]}
    else:
        assert what in refused(tmp_path)


def test_values_that_double_without_end(tmp_path: Path) -> None:
    chains = {
        "text": ('"aaaaaaaaaaaaaaaa"', '"${local.%s}${local.%s}"'),
        "list": ("[1]", "concat(local.%s, local.%s)"),
        "tree": ("[1]", "{ x = local.%s, y = local.%s }"),
        "number": ("10", "local.%s * local.%s"),
    }
    for name, (start, double) in chains.items():
        steps = "".join(f"  l{n + 1} = {double % ((f'l{n}',) * 2)}\n" for n in range(60))
        told = message(
            tmp_path, {"main.tf": f"locals {{\n  l0 = {start}\n{steps}}}\n" + acl(resource="jsonencode(local.l60)")}
        )
        assert told.startswith("main.tf:"), name
        assert "more than" in told or "too large" in told, name


def test_loops_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loops = "[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : 1]]]"
    monkeypatch.setattr(evaluation, "MOST_STEPS", 10_000)
    told = message(tmp_path, {"main.tf": acl(resource=f"jsonencode({loops})")})
    assert told.startswith("main.tf:4: resource_name: more than 10,000 steps to evaluate these files")


def test_work_without_end_in_calls_templates_and_long_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "MOST_STEPS", 10_000)
    calls = "".join(f'module "m{n}" {{\n  source = "../%s"\n}}\n' for n in range(10))
    modules = {f"l{n}/main.tf": calls.replace("%s", f"l{n + 1}") for n in range(6)}
    templates = 'jsonencode([for a in range(100) : templatefile("t.tpl", {})])'
    long = 'jsonencode([for a in range(1000) : length(upper(join("", [for b in range(1000) : "xxxxxxxxxx"])))])'
    for number, files in enumerate(
        (
            {**modules, "l6/main.tf": acl()},
            {"main.tf": acl(resource=templates), "t.tpl": "%{for a in range(1000)}x%{endfor}"},
            {f"root{n}/main.tf": acl(resource='join("", [for a in range(1000) : "x"])') for n in range(12)},
            {"main.tf": acl(resource=long)},
            {"main.tf": acl(more="count = 10000")},
        )
    ):
        assert "more than 10,000 steps to evaluate" in message(tmp_path / str(number), files)


def test_a_root_module_with_an_error_is_unread_beside_others(tmp_path: Path) -> None:
    wrong = acl().replace("Read", "Raed")
    found = read_rules(write_files(tmp_path, {"a/main.tf": acl(), "b/main.tf": wrong, "c/main.tf": "locals {}\n"}))
    assert len(found.rules) == 1
    [unread] = found.unread
    assert (unread.label, Path(unread.file).name) == ("broken:root-module", "main.tf")
    assert "a root module has an error: " in unread.reason
    assert "Raed" in unread.reason
    assert "Raed" in refused(tmp_path, strict=True)
    (tmp_path / "a" / "main.tf").unlink()
    assert "Raed" in refused(tmp_path)


def test_long_chains_of_references(tmp_path: Path) -> None:
    steps = "".join(f"  l{n + 1} = local.l{n}\n" for n in range(500))
    files = {"main.tf": f'locals {{\n  l0 = "end"\n{steps}}}\n' + acl(resource="local.l500")}
    assert rules(tmp_path, files) == {"ALLOW READ TOPIC end to User:a": [504]}
    more = "".join(f"  l{n + 1} = [for x in [1] : local.l{n}][0]\n" for n in range(2_000))
    told = message(tmp_path, {"main.tf": f'locals {{\n  l0 = "end"\n{more}}}\n' + acl(resource="local.l2000")})
    assert told == "main.tf:1003: references lead to others more than 1,000 deep"


def test_cycles(tmp_path: Path) -> None:
    told = message(tmp_path, {"main.tf": "locals {\n  a = local.b\n  b = [local.a]\n}\n" + acl(resource="local.a")})
    assert told == "main.tf:3: a cycle: local.a -> local.b -> local.a"
    calls = {"main.tf": 'module "m" {\n  source = "./m"\n}\n', "m/main.tf": 'module "m" {\n  source = "../m"\n}\n'}
    assert "modules call each other more than 50 deep" in message(tmp_path, calls)


@pytest.mark.parametrize(
    ("template", "text"),  # what HashiCorp's evaluator makes of them
    [
        ('x ${~ "y" ~}\n\n  z\n', "xy\n  z\n"),
        ("%{ for a in n ~}\n  - ${a}\n%{ endfor ~}\nend", "  - p\n  - q\nend"),
        ("\n\n  %{~ if true ~}\n\n yes \n\n %{~ endif ~}\n\n", "\n\n\n yes \n\n\n"),
        ('$${x} %%{y} "q" \\n', '${x} %{y} "q" \\n'),
        ("<<E\n# ${n[0]}\r\nE", "<<E\n# p\r\nE"),
        ("", ""),
    ],
)
def test_template_files(tmp_path: Path, template: str, text: str) -> None:
    (tmp_path / "t.tpl").write_bytes(template.encode())
    found = rules(tmp_path, {"main.tf": acl(resource='md5(templatefile("t.tpl", { n = ["p", "q"] }))')})
    assert list(found) == [
        f"ALLOW READ TOPIC {hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()} to User:a"
    ]


def test_functions_on_files_stay_within_the_tree(tmp_path: Path) -> None:
    files = {
        "live/main.tf": acl(resource='templatefile("${path.module}/../t/name.tpl", { n = ["x", "y"] })'),
        "t/name.tpl": "%{ for x in n ~}\n${x}-\n%{~ endfor ~}\n!",
        "live/set.tf": acl("b", resource='join(",", fileset("${path.root}/../t", "*.{tpl,txt}"))'),
    }
    assert list(rules(tmp_path, files)) == ["ALLOW READ TOPIC x-y-! to User:a", "ALLOW READ TOPIC name.tpl to User:a"]
    assert "only paths within the repository" in message(
        tmp_path, {"live/set.tf": acl("b", resource='file("/etc/hostname")')}
    )
    assert "there is no file" in message(tmp_path, {"live/set.tf": acl("b", resource='file("gone.txt")')})
