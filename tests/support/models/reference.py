"""The decision as plain loops over all rules: slow, and as near to the words of docs/semantics.md as can be.

Nothing of the engine is used here (values and errors are), so that the two can be compared. The model itself is
held against the golden sets.
"""

from collections.abc import Iterable
from ipaddress import ip_address, ip_network

from aclog.authorizer.acl import AclBindingFilter, StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import InvalidRequestError

ALLOWED, DENIED = "ALLOWED", "DENIED"

IMPLIED_BY = {
    AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}
"""Which operations of an ALLOW rule allow this one too."""


def utf16(text: str) -> bytes:
    """A key that sorts and compares as Java compares strings: by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


_MEMBERS = {kind: {each.value: each for each in kind} for kind in (
    ResourceType, PatternType, AclOperation, AclPermissionType)}  # fmt: skip
_ALL, _ALLOW = AclOperation.ALL, AclPermissionType.ALLOW  # looked up millions of times


def member(kind, code: int):
    """The enum value of a raw code; UNKNOWN for a code that Kafka 4.3.1 does not know."""
    return _MEMBERS[kind].get(code, kind.UNKNOWN)


class Rule:
    """A StandardAcl with its codes looked up once."""

    def __init__(self, acl: StandardAcl) -> None:
        self.acl = acl
        self.type = member(ResourceType, acl.resource_type)
        self.name, self.units = acl.resource_name, utf16(acl.resource_name)
        self.pattern = member(PatternType, acl.pattern_type)
        self.literal = self.pattern == PatternType.LITERAL
        self.operation = member(AclOperation, acl.operation)
        self.permission = member(AclPermissionType, acl.permission_type)
        self.star = self.literal and self.name == "*"
        self.filter_value = filter_value(self)

    def order_at_a_name(self):
        return (
            self.pattern, self.operation, utf16(self.acl.principal), utf16(self.acl.host), self.permission
        )  # fmt: skip

    @property
    def text(self) -> str:
        return f"MatchingAcl(acl={self.acl})"


def in_kafka_order(rules: Iterable[Rule]) -> list[Rule]:
    """By type ascending, name descending, then all else ascending (StandardAcl.compareTo)."""
    ordered = sorted(rules, key=Rule.order_at_a_name)
    ordered.sort(key=lambda rule: utf16(rule.name), reverse=True)
    ordered.sort(key=lambda rule: rule.type)
    return ordered


def _place(rules: list[Rule], start: tuple[bytes, int]) -> int:
    """Where the rules begin that are on a name from this pattern type on, or on a name that sorts below it."""
    units, pattern = start
    return sum(rule.units > units or (rule.units == units and rule.pattern < pattern) for rule in rules)


class ReferenceAuthorizer:
    """Kafka 4.3.1's StandardAuthorizer, naively. Hosts come in Java's form (aclog.authorizer.acl.host_address)."""

    def __init__(
        self,
        acls: Iterable[StandardAcl],
        super_users: frozenset[str] = frozenset(),
        allow_everyone: bool = False,
        documented: bool = False,
        cidr: bool = False,
    ) -> None:
        """`documented` turns off quirk 3 (`*` does not cover `*foo`); `cidr` lets a rule's host be a range."""
        self.rules = in_kafka_order(Rule(acl) for acl in acls)
        self.super_users, self.allow_everyone = super_users, allow_everyone
        self.documented, self.cidr = documented, cidr
        self._found: dict[tuple[int, str], tuple[list[Rule], list[Rule]]] = {}

    # --- which rules are about a resource -----------------------------------------------------------------

    def covers(self, rule: Rule, resource_type: int, name: str) -> bool:
        """Whether the rule's pattern covers the resource; every pattern but LITERAL acts as a prefix."""
        if rule.type != resource_type:
            return False
        if not rule.literal:
            return name.startswith(rule.name)
        return rule.name == name or (rule.star and not self.hidden_from_star(name))

    def hidden_from_star(self, name: str) -> bool:
        """Quirk 3: LITERAL `*` does not cover a longer name that begins with `*`."""
        return not self.documented and name.startswith("*") and name != "*"

    def candidates(self, resource_type: int, name: str) -> list[StandardAcl]:
        """The rules that cover the resource, in the order in which Kafka first looks at them."""
        return [rule.acl for rule in self._walks(resource_type, name)[0]]

    def _walks(self, resource_type: int, name: str) -> tuple[list[Rule], list[Rule]]:
        """The candidates in the order in which Kafka first looks at each, and in the order of its last looks."""
        key = (resource_type, name)
        if key not in self._found:
            rules = self._of_type(resource_type, name)
            # Kafka begins twice: at the resource's own name, and at LITERAL `*`.
            visits = self._section(rules, name, (utf16(name), PatternType.UNKNOWN))
            visits += self._section(rules, name, (utf16("*"), PatternType.LITERAL))
            last = list(dict.fromkeys(reversed(visits)))[::-1]
            self._found[key] = list(dict.fromkeys(visits)), last
        return self._found[key]

    def _of_type(self, resource_type: int, name: str) -> list[Rule]:
        """The rules of a type in Kafka's order; where only the documents let LITERAL `*` cover the name, it comes after
        all else on `*`."""
        rules = [rule for rule in self.rules if rule.type == resource_type]
        if self.documented and name.startswith("*") and name != "*":
            stars = [rule for rule in rules if rule.star]
            end = sum(rule.units >= utf16("*") for rule in rules)
            rules = [rule for rule in rules[:end] if not rule.star] + stars + rules[end:]
        return rules

    def _section(self, rules: list[Rule], name: str, start: tuple[bytes, int]) -> list[Rule]:
        """What Kafka looks at from a place in its order on: down to the end, but at a name that is no prefix of the
        resource's it jumps to what the two share, and there to the pattern type at which it began.

        From `*` it can jump to the empty name only: where the two share more it loops or throws (`stuck`), and the
        model goes on.
        """
        visits, at = [], _place(rules, start)
        while at < len(rules):
            rule, at = rules[at], at + 1
            if self.covers(rule, rule.type, name):
                visits.append(rule)
            elif not name.startswith(rule.name) and not rule.star:
                shared = common_units(name, rule.name)
                if shared == 0 or start[0] == utf16(name):
                    at = _place(rules, (utf16(name)[: 2 * shared], start[1]))
        return visits

    # --- whether a rule matches the request ------------------------------------------------------------------

    def is_for(self, rule: Rule, principal: str) -> bool:
        if ":" not in rule.acl.principal:
            raise InvalidRequestError(
                f"Could not parse principal from `{rule.acl.principal}` "
                "(no colon is present separating the principal type from the principal name)"
            )
        return rule.acl.principal in (principal, "User:*")

    def is_from(self, rule: Rule, host: str) -> bool:
        if rule.acl.host in ("*", host):
            return True
        return self.cidr and "/" in rule.acl.host and in_range(host, rule.acl.host)

    def matches(self, rule: Rule, principal: str, host: str, operation: int) -> bool:
        if not self.is_for(rule, principal) or not self.is_from(rule, host):
            return False
        if rule.operation in (_ALL, operation):
            return True
        return rule.permission == _ALLOW and rule.operation in IMPLIED_BY.get(operation, set())

    # --- the answers -----------------------------------------------------------------------------------------

    def decide(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> tuple[str, str]:
        """The decision on a LITERAL resource and the rule that made it, as Kafka's audit line names it."""
        if principal in self.super_users:
            return ALLOWED, "SuperUser"
        if ":" not in principal:
            raise InvalidRequestError("Could not parse principal")
        if principal == "User:*":
            raise InvalidRequestError("duplicate element: User:*")
        operation, resource_type = member(AclOperation, operation), member(ResourceType, resource_type)
        first, last = self._walks(resource_type, name)
        if not first:
            return (ALLOWED, "DefaultAllow") if self.allow_everyone else (DENIED, "DefaultDeny")
        for rule in first:
            if self.matches(rule, principal, host, operation) and rule.permission != _ALLOW:
                return DENIED, rule.text
        for rule in reversed(last):
            if self.matches(rule, principal, host, operation):
                return ALLOWED, rule.text
        return DENIED, "DefaultDeny"

    def by_resource_type(self, principal: str, host: str, operation: int, resource_type: int) -> tuple[str, str]:
        """Whether at least one resource of the type is allowed (the Authorizer interface's default method).

        The rule is that of the probe of a resource named `hardcode`, which is the only one that Kafka logs.
        """
        operation, resource_type = member(AclOperation, operation), member(ResourceType, resource_type)
        if resource_type == ResourceType.ANY:
            raise InvalidRequestError("Must specify a non-filter resource type for authorizeByResourceType")
        if resource_type == ResourceType.UNKNOWN:
            raise InvalidRequestError("Unknown resource type")
        if operation == AclOperation.ANY:
            raise InvalidRequestError("Must specify a non-filter operation type for authorizeByResourceType")
        if operation == AclOperation.UNKNOWN:
            raise InvalidRequestError("Unknown operation type")
        decision, rule = self.decide(principal, host, operation, resource_type, "hardcode")
        if decision == DENIED and self._some_resource_allowed(principal, host, operation, resource_type):
            decision = ALLOWED
        return decision, f"hardcode:{rule}"

    def _some_resource_allowed(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        for rule in self.rules:
            refuse_filter_values(rule)
        mine = [
            rule
            for rule in self.rules
            if rule.type == resource_type
            and self.is_from(rule, host)
            and self.is_for(rule, principal)
            and rule.operation in (operation, AclOperation.ALL)
        ]
        denied = [rule for rule in mine if rule.permission == AclPermissionType.DENY]
        allowed = [rule for rule in mine if rule.permission == AclPermissionType.ALLOW]
        if any(rule.star for rule in denied):
            return False
        if any(rule.star for rule in allowed):
            return True
        denied_prefixes = [rule.name for rule in denied if rule.pattern == PatternType.PREFIXED and rule.name]
        denied_names = [rule.name for rule in denied if rule.literal]
        for rule in allowed:
            if rule.pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
                continue
            if any(rule.name.startswith(prefix) for prefix in denied_prefixes):
                continue
            if rule.literal and rule.name in denied_names:
                continue
            return True
        return False

    def matching(self, acl_filter: AclBindingFilter) -> list[StandardAcl]:
        """The rules that a filter takes, in Kafka's order."""
        return [rule.acl for rule in self.rules if takes(acl_filter, rule)]

    def stuck(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> str | None:
        """Point 4: `hangs` or `throws` where a real 4.3.1 gives no answer to this request; None where it does."""
        if principal in self.super_users or utf16(name) >= utf16("*") or not name:
            return None
        of_type = [rule for rule in self.rules if rule.type == resource_type]
        if any(rule.name == "*" and rule.pattern > PatternType.LITERAL for rule in of_type):
            return None
        for rule in self._walks(resource_type, name)[0]:
            if ":" not in rule.acl.principal:
                return None  # throws before, and for another reason
            if self.matches(rule, principal, host, operation) and rule.permission != _ALLOW:
                return None
        for rule in of_type:
            if utf16(rule.name) < utf16("*") and not utf16(name).startswith(utf16(rule.name)):
                shared = common_units(name, rule.name)
                return None if shared == 0 else "hangs" if shared == 1 else "throws"
        return None


def common_units(a: str, b: str) -> int:
    """How many UTF-16 code units two names share from the start."""
    first, right = utf16(a), utf16(b)
    shared = 0
    while shared < min(len(first), len(right)) and first[shared : shared + 2] == right[shared : shared + 2]:
        shared += 2
    return shared // 2


def in_range(host: str, text: str) -> bool:
    """Whether the host lies in a CIDR range; an IPv4-mapped base and 0.0.0.0 do not count."""
    try:
        network = ip_network(text, strict=False)
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    if network.version != address.version or (int(address) == 0 and address.version == 4):
        return False
    if network.version == 6 and ip_address(text.partition("/")[0]).ipv4_mapped is not None:
        return False
    return address in network


def filter_value(rule: Rule) -> str | None:
    """What Kafka says of a rule with a value that only filters may hold."""
    fields = {
        "resourceType": rule.type, "patternType": rule.pattern,
        "operation": rule.operation, "permissionType": rule.permission,
    }  # fmt: skip
    return next(
        (f"{field} must not be {value.name}" for field, value in fields.items() if value.name in ("ANY", "MATCH")), None
    )


def refuse_filter_values(rule: Rule) -> None:
    """What only filters may hold makes Kafka's listing throw, of which byResourceType is made."""
    if rule.filter_value:
        raise InvalidRequestError(rule.filter_value)


def takes(acl_filter: AclBindingFilter, rule: Rule) -> bool:
    """Whether a filter takes a rule (AclBindingFilter.matches); a pattern other than LITERAL counts as a prefix."""
    return (
        acl_filter.principal in (None, rule.acl.principal)
        and acl_filter.host in (None, rule.acl.host)
        and member(ResourceType, acl_filter.resource_type) in (ResourceType.ANY, rule.type)
        and member(AclOperation, acl_filter.operation) in (AclOperation.ANY, rule.operation)
        and member(AclPermissionType, acl_filter.permission_type) in (AclPermissionType.ANY, rule.permission)
        and takes_name(member(PatternType, acl_filter.pattern_type), acl_filter.resource_name, rule)
    )


def takes_name(pattern: PatternType, name: str | None, rule: Rule) -> bool:
    """ResourcePatternFilter.matches, for pattern type and name."""
    acl = rule.acl
    if pattern not in (PatternType.ANY, PatternType.MATCH, rule.pattern):
        return False
    if name is None:
        return True
    if pattern != PatternType.MATCH:
        return name == acl.resource_name
    return acl.resource_name in (name, "*") if rule.literal else name.startswith(acl.resource_name)
