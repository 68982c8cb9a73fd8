"""Adding and removing ACLs, with the output of kafka-acls.sh."""

from collections.abc import Iterable, Sequence

from attrs import evolve

from aclog.authorizer.acl import acl_text, resource_of
from aclog.authorizer.interface import AclCreateResult, AclDeleteResult
from aclog.cli.acls.flags import RuleFlags, parse_principal
from aclog.cli.acls.kafka_format import adding, already_there, entry_of, question
from aclog.cli.acls.plan import Plan, filters_of, plan_to_add, plan_to_remove, rule_of
from aclog.cli.acls.targets import AclTarget, ChosenTarget, open_target
from aclog.cli.flags.resources import ResourceFlags
from aclog.cli.rule_warnings import warn_of_unmatched
from aclog.metalog.errors import ConfigError
from aclog.terminal.confirmation import confirms
from aclog.terminal.notices import note
from aclog.terminal.output import emit

_NO_ANSWER = "no answer on stdin: nothing was removed; use --force to remove without asking"


def add_acls(target: ChosenTarget, resources: ResourceFlags, entries: RuleFlags, *, force: bool) -> None:
    """Add the ACLs that the flags name, in one batch, and print what kafka-acls.sh prints; warn if one matches nobody.

    Raises:
        ConfigError: incompatible flags.
        AclRequestError, RequestError: an ACL that the controller refuses; in a log, none is added then.
        LockedError, LogError, DecodeError: the log cannot be written, or is damaged; or the server is unreachable.

    """
    plan = plan_to_add(resources, entries)
    with open_target(target, force=force) as rules:
        _add(rules, plan)


def _additions(rules: AclTarget, plan: Plan) -> Iterable[str]:
    existing = rules.existing(list(plan))
    for pattern, entries in plan.items():
        new = []
        for entry in entries:
            if rule_of(pattern, entry) in existing:
                yield already_there(pattern, entry)
            else:
                new.append(entry)
        if new:
            yield adding(pattern, new)


def copy_acls(target: ChosenTarget, original: str, principals: Sequence[str], *, force: bool) -> None:
    """Add the ACLs of one principal for others, in one batch, and print what add_acls prints.

    Raises as add_acls; ConfigError: a principal without a colon, the same one twice, or one that has no ACL.
    """
    copied, wanted = parse_principal(original), list(dict.fromkeys(map(parse_principal, principals)))
    if copied in wanted:
        raise ConfigError(f"--to-principal {copied}: that is whose ACLs are copied: expected another principal")
    with open_target(target, force=force) as rules:
        found = sorted(rules.of_principal(copied), key=acl_text)
        if not found:
            raise ConfigError(f"--from-principal {copied}: no ACL is of this principal; names are compared exactly")
        plan: Plan = {}
        for acl in (evolve(each, principal=principal) for principal in wanted for each in found):
            plan.setdefault(resource_of(acl), []).append(entry_of(acl))
        _add(rules, plan)


def _add(rules: AclTarget, plan: Plan) -> None:
    wanted = [rule_of(pattern, entry) for pattern, listed in plan.items() for entry in listed]
    lines = list(_additions(rules, plan))  # before they are added: which ones exist already
    _raise_first(rules.create(wanted))
    for line in lines:
        emit(line)
    warn_of_unmatched(wanted, rules.matches_ranges)


def remove_acls(target: ChosenTarget, resources: ResourceFlags, entries: RuleFlags, *, force: bool) -> None:
    """Remove the ACLs that the flags name, in one batch; without `force`, ask on stdin for each resource.

    Raises as add_acls; and ConfigError if stdin ends without an answer.
    """
    plan = plan_to_remove(resources, entries)
    confirmed = {
        pattern: listed for pattern, listed in plan.items() if force or confirms(question(pattern, listed), _NO_ANSWER)
    }
    if not confirmed:
        return
    with open_target(target, force=force) as rules:
        results = rules.delete([each for pattern, listed in confirmed.items() for each in filters_of(pattern, listed)])
        _raise_first(results)
    removed = {rule for result in results for rule in result.deleted}
    note(f"{len(removed)} ACL(s) removed")


def _raise_first(results: Iterable[AclCreateResult | AclDeleteResult]) -> None:
    for result in results:
        if result.error is not None:
            raise result.error
