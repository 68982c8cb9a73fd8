"""`aclog lint --fix`: a change that mends findings and no decision."""

import json
from random import Random

import pytest

from aclog.analysis.difference import differences
from aclog.analysis.lint.catalogue import BY_ID
from aclog.analysis.lint.finding import Finding
from aclog.analysis.lint_report.located_finding import LocatedFinding
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.origin import NO_ORIGINS
from aclog.authorizer.rule_change import RuleChange, changed_acls
from aclog.cli.lint.fix import write_fix
from aclog.metalog.errors import ConfigError
from tests.support.builders.acls import acl


def policy_of(*rules):
    return Policy(AclsImage.from_acls(StandardAclWithId(id=None, acl=rule) for rule in rules))


def removal(rule, lint="08"):
    """A finding that would have the rule removed."""
    finding = Finding(
        lint=lint, severity=BY_ID[lint].severity, rules=(rule,), lost="", advice="", neutral=True,
        fix=(RuleChange(added=False, acl=rule),),
    )  # fmt: skip
    return LocatedFinding.of(finding, NO_ORIGINS)


WIDE = acl("orders.", "User:a", pattern_type=PatternType.PREFIXED)
NARROW = acl("orders.in", "User:a")


@pytest.mark.parametrize("seed", range(8))
def test_no_decision_changes_whatever_is_asked(seed, tmp_path, capsys):
    random = Random(seed)
    rules = {
        acl(
            random.choice(("a", "ab", "abc", "*")),
            random.choice(("User:a", "User:b", "User:*")),
            pattern_type=random.choice((PatternType.LITERAL, PatternType.PREFIXED)),
            operation=random.choice((AclOperation.READ, AclOperation.DESCRIBE, AclOperation.ALL)),
            permission_type=random.choice((AclPermissionType.ALLOW, AclPermissionType.ALLOW, AclPermissionType.DENY)),
        )
        for _ in range(14)
    }
    policy = policy_of(*rules)
    path = tmp_path / "change.jsonl"
    write_fix(path, policy, [removal(rule) for rule in rules])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {line["action"] for line in lines} <= {"REMOVE"}
    assert f"{len(lines):,} change" in capsys.readouterr().err
    removed = [RuleChange(added=False, acl=rule) for rule in rules if _object(rule) in [each["rule"] for each in lines]]
    assert len(removed) == len(lines)
    after = Policy(changed_acls(policy.acls, removed))
    assert next(differences(policy, after), None) is None
    # nothing more could go: each rule that stayed decides something, but for a DENY that may stand guard
    for rule in rules - {change.acl for change in removed}:
        if rule.permission_type == AclPermissionType.DENY:
            continue
        without = Policy(changed_acls(after.acls, [RuleChange(added=False, acl=rule)]))
        assert next(differences(after, without), None) is not None, rule


def _object(rule):
    from aclog.analysis.lint_report.located_finding import rule_object

    return rule_object(rule)


def test_a_file_is_never_replaced_by_another_change(tmp_path, capsys):
    policy, path = policy_of(WIDE, NARROW), tmp_path / "change.jsonl"
    write_fix(path, policy, [removal(NARROW)])
    assert "written: 1 change for 1 finding, proved to change no decision\n" in capsys.readouterr().err
    written = path.read_bytes()
    write_fix(path, policy, [removal(NARROW)])
    assert "already there" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="exists already, and is not this change"):
        write_fix(path, policy, [])
    assert path.read_bytes() == written
    with pytest.raises(ConfigError, match="exists already"):
        write_fix(tmp_path, policy, [])
    assert [each.name for each in tmp_path.iterdir()] == ["change.jsonl"]
