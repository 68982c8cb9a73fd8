"""One test of a YAML file, and its cases."""

from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from aclog.analysis.rule_tests.can import Can
from aclog.analysis.rule_tests.can_only import CanOnly
from aclog.analysis.rule_tests.cannot import Cannot
from aclog.analysis.rule_tests.case import Case
from aclog.analysis.rule_tests.case_subject import CaseSubject
from aclog.analysis.rule_tests.intent_case import HasIntent
from aclog.analysis.rule_tests.reason import Reason
from aclog.analysis.rule_tests.rule_text import parse_rule_text
from aclog.analysis.rule_tests.tested_resource import parse_resource
from aclog.analysis.rule_tests.who_can import WhoCan
from aclog.authorizer.acl import WILDCARD_PRINCIPAL, AclOperation, PatternType, ResourcePattern
from aclog.authorizer.hosts import host_address
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.node import Node
from aclog.sources.rule_tests.comparison_nodes import no_new_access_case, same_as_case
from aclog.sources.rule_tests.intent_nodes import intent_of, parse_intent
from aclog.sources.rule_tests.listed_nodes import parse_listed
from aclog.sources.rule_tests.node_values import mask_of, one_or_more, operation_of, parsed, resource_of

_ABOUT_PRINCIPALS = ("can", "cannot", "can_only", "intents", "reason")
_EXPECTED = (*_ABOUT_PRINCIPALS, "who_can", "same_as", "no_new_access")
_KEYS = ("name", "principal", "except", "host", *_EXPECTED)


@frozen(kw_only=True)
class CaseNodes:
    """A test: whom it is about, and what is expected."""

    name: str
    """Its own, or that of its line."""
    node: Node
    directory: Path
    """That of the file, where its paths begin."""

    @staticmethod
    def of(node: Node, directory: Path) -> "CaseNodes":
        """Return a test. Raises ConfigError: an unknown key, a key without a value, or nothing expected."""
        node.check_keys(_KEYS, "a test")
        for key, member in node.mapping("a test").items():
            if member.is_null:
                raise member.error(f"{key} has no value")
        if not any(node.get(key) for key in _EXPECTED):
            raise node.error(f"a test expects nothing: expected one of {', '.join(_EXPECTED)}")
        name = node.get("name")
        return CaseNodes(
            name=f"line {node.line}" if name is None else name.text("name"), node=node, directory=directory
        )

    def cases(self) -> Iterator[Case]:
        """Yield its cases, in the order of the keys above. Raises ConfigError: something is not understood."""
        subjects = self._subjects()
        yield from self._accesses("can", Can, subjects)
        yield from self._accesses("cannot", Cannot, subjects)
        yield from self._can_only(subjects)
        yield from self._intents(subjects)
        yield from self._reasons(subjects)
        yield from self._who_can()
        for key, made in (("same_as", same_as_case), ("no_new_access", no_new_access_case)):
            found = self.node.get(key)
            if found is not None:
                yield made(found, test=self.name, directory=self.directory)

    def _subjects(self) -> list[CaseSubject]:
        """Return each principal from each host."""
        principals, hosts = self.node.get("principal"), self.node.get("host")
        if not any(self.node.get(key) for key in _ABOUT_PRINCIPALS):
            for key in ("principal", "except", *(("host",) if self.node.get("who_can") is None else ())):
                found = self.node.get(key)
                if found is not None:
                    raise found.error(f"{key}: only together with {', '.join(_ABOUT_PRINCIPALS)}")
            return []
        if principals is None:
            raise self.node.error("a test has no principal: expected TYPE:NAME, or User:* for everybody")
        but = tuple(_principal(each) for each in one_or_more(self.node.get("except"), "except"))
        named = [_principal(each, everybody=True) for each in one_or_more(principals, "principal")]
        if but and named != [WILDCARD_PRINCIPAL]:
            raise self.node.required("except").error("except: only with the principal User:*")
        addresses = _addresses(hosts)
        return [CaseSubject(principal=each, but=but, host=host) for each in named for host in addresses]

    def _accesses(self, key: str, kind: type[Can | Cannot], subjects: list[CaseSubject]) -> Iterator[Case]:
        for operation, resources in self._members(key):
            mask = mask_of(operation_of(operation, resources))
            for resource in one_or_more(resources, f"{key} {operation}"):
                for subject in subjects:
                    yield kind(
                        test=self.name,
                        origin=resource.origin,
                        subject=subject,
                        operations=mask,
                        resource=resource_of(resource),
                    )

    def _can_only(self, subjects: list[CaseSubject]) -> Iterator[Case]:
        node = self.node.get("can_only")
        if node is not None:
            listed = parse_listed(node)
            for subject in subjects:
                yield CanOnly(test=self.name, origin=node.origin, subject=subject, listed=listed)

    def _intents(self, subjects: list[CaseSubject]) -> Iterator[Case]:
        for word, node in self._members("intents"):
            intent = intent_of(word, node)
            resources, needs = parse_intent(intent, node)
            for subject in subjects:
                yield HasIntent(
                    test=self.name,
                    origin=node.origin,
                    subject=subject,
                    intent=intent,
                    resources=resources,
                    named=needs.named,
                    some=needs.some,
                )

    def _reasons(self, subjects: list[CaseSubject]) -> Iterator[Case]:
        for asked, node in self._members("reason"):
            operation, resource = _asked(asked, node)
            if operation is AclOperation.ALL or resource.pattern_type != PatternType.LITERAL:
                raise node.error(f"reason {asked[:60]!r}: expected one operation on one resource")
            for subject in subjects:
                if subject.principal == WILDCARD_PRINCIPAL:
                    raise node.error("reason: expected one principal, not everybody")
                yield Reason(
                    test=self.name,
                    origin=node.origin,
                    subject=subject,
                    operation=operation,
                    resource=resource,
                    expected=parsed(node, f"the reason of {asked}", parse_rule_text),
                )

    def _who_can(self) -> Iterator[Case]:
        hosts = _addresses(self.node.get("host"))
        for asked, node in self._members("who_can"):
            operation, resource = _asked(asked, node)
            expected = tuple(dict.fromkeys(_holder(each) for each in node.items(f"who_can {asked}")))
            for host in hosts:
                yield WhoCan(
                    test=self.name,
                    origin=node.origin,
                    operations=mask_of(operation),
                    resource=resource,
                    expected=expected,
                    host=host,
                )

    def _members(self, key: str) -> Iterator[tuple[str, Node]]:
        node = self.node.get(key)
        if node is None:
            return
        members = node.mapping(key)
        if not members:
            raise node.error(f"{key} is empty")
        yield from members.items()


def _addresses(node: Node | None) -> list[str | None]:
    """Return the hosts of a test; None, every host, if it names none."""
    return [None] if node is None else [parsed(each, "host", host_address) for each in one_or_more(node, "host")]


def _asked(text: str, node: Node) -> tuple[AclOperation, ResourcePattern]:
    """Return an operation and a resource, as in `READ topic:bill.in`."""
    word, _, resource = text.strip().partition(" ")
    try:
        return operation_of(word, node), parse_resource(resource.strip())
    except ConfigError as error:
        if resource.strip():
            raise error if str(error).startswith(node.file) else node.error(str(error)) from error
        raise node.error(f"{text[:60]!r}: expected OPERATION TYPE:NAME, such as READ topic:orders") from error


def _principal(node: Node, *, everybody: bool = False) -> str:
    text = node.text("a principal")
    if ":" not in text:
        raise node.error(f"principal {text[:60]!r}: expected TYPE:NAME, such as User:alice")
    if text == WILDCARD_PRINCIPAL and not everybody:
        raise node.error(f"{text}: expected a single principal here")
    return text


def _holder(node: Node) -> str:
    """Return a principal of a `who_can`, `User:*`, or `not ` and a principal."""
    text = node.text("a principal")
    if ":" not in text:
        raise node.error(f"principal {text[:60]!r}: expected TYPE:NAME, User:* or `not TYPE:NAME`")
    return text
