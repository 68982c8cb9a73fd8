"""What the engine answers to one request, in the letters and texts of the golden sets."""

import pyarrow as pa

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.interface import Action, AuthorizationResult, InvalidRequestError, RequestContext
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.primitives import uuid_text
from aclog.usage.decisions.decisions import ALLOWED, BASES, ERRORS
from aclog.usage.decisions.intervals import RULE_COLUMNS

LETTER = {AuthorizationResult.ALLOWED: "A", AuthorizationResult.DENIED: "D"}
NOBODY_SPECIAL = Settings()


def engine(acls: AclsImage, settings: Settings = NOBODY_SPECIAL) -> StandardAuthorizer:
    """The authorizer that a node would have."""
    authorizer = StandardAuthorizer(documented=settings.documented, cidr=settings.cidr)
    everyone = "true" if settings.allow_everyone else "false"
    authorizer.configure({"super.users": ";".join(settings.super_users), "allow.everyone.if.no.acl.found": everyone})
    authorizer.load(acls)
    authorizer.complete_initial_load()
    return authorizer


def decided(
    authorizer: StandardAuthorizer, principal: str, host: str, operation: str, resource_type: str, name: str
) -> tuple[str, str, str | None]:
    """Letter, rule and the rule's id; E alone where Kafka's authorizer throws."""
    pattern = ResourcePattern(resource_type=ResourceType[resource_type], name=name)
    context = RequestContext(principal=principal, host=host)
    try:
        decision = authorizer.decide(context, Action(operation=AclOperation[operation], resource_pattern=pattern))
    except InvalidRequestError:
        return "E", "", None
    rule_id = None if decision.rule is None or decision.rule.id is None else uuid_text(decision.rule.id)
    return LETTER[decision.result], decision.text, rule_id


def answer_of(code: int, table: pa.Table) -> tuple[str, str]:
    """Letter and rule of the bulk authorizer's decision code; `table` has the rules."""
    if code < 0:
        return "E" if code in ERRORS else "A" if code in ALLOWED else "D", BASES.get(code, "")
    row = table.slice(code, 1).to_pylist()[0]
    fields = ", ".join(f"{name}={row[name]}" for name in RULE_COLUMNS[:-1])
    return "A" if row["permissionType"] == "ALLOW" else "D", f"MatchingAcl(acl=StandardAcl[{fields}])"
