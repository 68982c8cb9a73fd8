"""Files of tests of ACLs: YAML and JSON lines."""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from attrs import field

from aclog.analysis.intents import Intent
from aclog.analysis.policy import Policy
from aclog.analysis.regions import REQUESTED, Request
from aclog.analysis.rule_tests.case import (
    TYPES,
    Application,
    Case,
    CaseSubject,
    IntentNeeds,
    application_resources,
    intent_needs,
    parse_names,
    parse_resource,
    stream_needs,
)
from aclog.analysis.rule_tests.expectations import (
    ERROR,
    Can,
    Cannot,
    CanOnly,
    Decides,
    HasIntent,
    ListedAccess,
    ListedHosts,
    NoNewAccess,
    Reason,
    RuleText,
    SameAs,
    WhoCan,
    parse_rule_text,
)
from aclog.authorizer.acl import (
    FileOrigin,
    ResourcePattern,
    cidr_range,
    enum_field,
    host_address,
    origin_text,
    parse_name,
)
from aclog.authorizer.acls_image import Basis
from aclog.authorizer.codes import WILDCARD_PRINCIPAL, AclOperation, PatternType, ResourceType
from aclog.authorizer.settings import Generation, Settings, named_generation, parse_super_users
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.metalog.errors import ConfigError, MetadataError, os_error_text
from aclog.metalog.json_object import parse_object, text_field
from aclog.metalog.values import define, frozen
from aclog.snapshots.image import Image
from aclog.sources.accesses import read_accesses
from aclog.sources.acl_lines import STDIN, display_name, numbered
from aclog.sources.formats.nodes import Node
from aclog.sources.formats.rule import DirectoryTree, SourceFile
from aclog.sources.named_source import NamedSource, parse_source
from aclog.sources.repository import SEMANTICS, AuthorizerSettings
from aclog.terminal.output import note

# Inputs of tests of rules: the policy of a named source, and a file of accesses; read on first use.


@define(eq=False, kw_only=True)
class SourcePolicy:
    """The policy of a named source (aclog.analysis.rule_tests.case.OtherPolicy), as of its first use."""

    source: NamedSource
    _image: Image | None = field(default=None, init=False)
    _last: Policy | None = field(default=None, init=False)
    _premises: Premises = field(default=ALL_KNOWN, init=False)

    @property
    def premises(self) -> Premises:
        """The unknown settings of a running cluster, once its policy was read."""
        return self._premises

    @property
    def name(self) -> str:
        """How people name the source."""
        return self.source.name

    def policy(self, settings: Settings) -> Policy:
        """Return the policy with these settings. Raises MetadataError: the source cannot be read."""
        if self._image is None:
            try:
                source = self.source.open(note)
                self._image, self._premises = source.image(), source.premises(frozenset())
                source.source.close()
            except OSError as error:
                raise ConfigError(f"{self.source.place}: {error.filename}: {os_error_text(error)}") from error
            except MetadataError as error:
                raise ConfigError(f"{self.source.place}: {error}") from error
        if self._last is None or self._last.settings != settings:
            acls = self._image.acls.with_options(documented=settings.documented, cidr=settings.cidr)
            self._last = Policy(acls, settings)
        return self._last


@define(eq=False, kw_only=True)
class AccessesFile:
    """Accesses of a file or a directory (aclog.analysis.rule_tests.case.Accesses)."""

    path: str
    place: str
    """File and line that name it, for errors."""
    _counts: Mapping[Request, int] | None = field(default=None, init=False)

    @property
    def name(self) -> str:
        """The path."""
        return self.path

    def counts(self) -> Mapping[Request, int]:
        """Return distinct accesses with their numbers.

        Raises:
            ConfigError: it cannot be read, has no access, or has a malformed line: a test must not pass because of
            skipped lines.

        """
        if self._counts is None:
            try:
                accesses = read_accesses(self.path)
            except OSError as error:
                raise ConfigError(f"{self.place}: {self.path}: {os_error_text(error)}") from error
            if accesses.malformed:
                raise ConfigError(f"{self.place}: {self.path}: {accesses.malformed:,} lines or rows are not accesses")
            if not accesses.counts:
                raise ConfigError(f"{self.place}: {self.path}: no accesses")
            self._counts = accesses.counts
        return self._counts


# Intents of a test: a list of resources, or a mapping by role.


_TYPES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "id": ResourceType.TRANSACTIONAL_ID,
}
"""The keys of a mapping; `id` is a transactional id."""
_APPLICATION = ("application", "inputs", "outputs", "exactly-once")


def intent_of(word: str, node: Node) -> Intent:
    """Return the intent of a key; `node` is its value. Raises ConfigError: there is no such intent."""
    if word in set(Intent):
        return Intent(word)
    near = get_close_matches(word, list(Intent), 1)
    hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(Intent)}"
    raise node.error(f"no intent is called {word[:60]!r}: {hint}")


def parse_intent(intent: Intent, node: Node) -> tuple[tuple[ResourcePattern, ...], IntentNeeds]:
    """Return the resources that a test names for an intent, and the role of each.

    Raises:
        ConfigError: no resource, or one that the intent has no use for; with file and line.

    """
    try:
        if intent is Intent.STREAM:
            application = _application(node)
            return application_resources(application), stream_needs(application)
        resources = tuple(_resources(node))
        return resources, intent_needs(intent, resources)
    except ConfigError as error:
        raise error if str(error).startswith(f"{node.file}:") else node.error(str(error)) from error


def _resources(node: Node) -> Iterator[ResourcePattern]:
    if isinstance(node.value, tuple):
        for item in node.value:
            yield parse_resource(item.text("a resource"))
    elif isinstance(node.value, str):
        yield parse_resource(node.text("a resource"))
    else:
        node.check_keys(list(_TYPES), "an intent")
        for key, kind in _TYPES.items():
            yield from _names(node.get(key), kind)


def _names(node: Node | None, kind: ResourceType) -> Iterator[ResourcePattern]:
    if node is not None:
        for item in node.value if isinstance(node.value, tuple) else (node,):
            yield parse_names(kind, item.text("a name"))


def _application(node: Node) -> Application:
    node.check_keys(_APPLICATION, "the intent stream")
    exactly_once = node.get("exactly-once")
    return Application(
        id=node.required("application", "the intent stream").text("application"),
        inputs=tuple(_names(node.get("inputs"), ResourceType.TOPIC)),
        outputs=tuple(_names(node.get("outputs"), ResourceType.TOPIC)),
        exactly_once=exactly_once is not None and exactly_once.boolean("exactly-once"),
    )


# Values of a test in a file: operations, lists of one or more, and texts that something parses.


_Value = TypeVar("_Value")

_OPERATIONS = tuple(operation for operation in AclOperation if operation >= AclOperation.ALL)


def operation_of(text: str, node: Node) -> AclOperation:
    """Return the operation of that name. Raises ConfigError: unknown; `node` is its value, for the location."""
    try:
        return parse_name(_OPERATIONS, text)
    except ConfigError as error:
        folded = text.upper().replace("-", "_") if text.isascii() else ""
        near = get_close_matches(folded, [each.name for each in _OPERATIONS], 1)
        what = f"{text[:40]!r}: did you mean {near[0]}?" if near else str(error)
        raise node.error(f"operation {what}") from error


def mask_of(operation: AclOperation) -> int:
    """Return an operation as a mask (aclog.analysis.regions); ALL is each of the 13."""
    return REQUESTED if operation is AclOperation.ALL else 1 << operation


def one_or_more(node: Node | None, what: str = "this") -> tuple[Node, ...]:
    """Return the items of a list, or a single value as a list; none without a node.

    Raises:
        ConfigError: the list is empty.

    """
    if node is None:
        return ()
    if not isinstance(node.value, tuple):
        return (node,)
    if not node.value:
        raise node.error(f"{what} is an empty list")
    return node.value


def parsed(node: Node, what: str, parse: Callable[[str], _Value]) -> _Value:
    """Parse a text. Raises ConfigError: not a text, or an error of `parse`; with file and line."""
    try:
        return parse(node.text(what))
    except ConfigError as error:
        raise error if str(error).startswith(f"{node.file}:") else node.error(str(error)) from error


def resource_of(node: Node) -> ResourcePattern:
    """Return the resource that a text names, such as `topic:orders`. Raises ConfigError: it names none."""
    members = node.value if isinstance(node.value, Mapping) else {}
    for word, name in members.items():
        # The value of YAML's `topic: orders`.
        if len(members) == 1 and word in TYPES and isinstance(name.value, str):
            raise node.error(f"a resource is a mapping: expected {word}:{name.raw[:80]}, without a blank")
    return parsed(node, "a resource", parse_resource)


# Tests that compare with another source: `same_as` and `no_new_access`.


def same_as_case(node: Node, *, test: str, directory: Path) -> SameAs:
    """Return the case of a `same_as`; paths begin at `directory`. Raises ConfigError: it is not understood."""
    node.check_keys(("source", "accesses"), "same_as")
    source, accesses = node.required("source", "same_as"), node.get("accesses")
    return SameAs(
        test=test,
        origin=node.origin,
        other=SourcePolicy(source=parse_source(source, directory)),
        accesses=None
        if accesses is None
        else AccessesFile(path=str(directory / accesses.text("accesses")), place=origin_text(accesses.origin)),
    )


def no_new_access_case(node: Node, *, test: str, directory: Path) -> NoNewAccess:
    """Return the case of a `no_new_access`; paths begin at `directory`. Raises ConfigError: it is not understood."""
    node.check_keys(("than", "except"), "no_new_access")
    return NoNewAccess(
        test=test,
        origin=node.origin,
        than=SourcePolicy(source=parse_source(node.required("than", "no_new_access"), directory)),
        but=tuple(resource_of(each) for each in one_or_more(node.get("except"), "except")),
    )


# The value of `can_only`: all permissions of a principal.


_MORE = ("except", "from", "not_from")


def parse_listed(node: Node) -> tuple[ListedAccess, ...]:
    """Return the accesses that a mapping of operations to resources lists; empty for `{}`.

    Raises:
        ConfigError: something is not understood; with file and line.

    """
    return tuple(_listed(node))


def _listed(node: Node) -> Iterator[ListedAccess]:
    for operation, items in node.mapping("can_only").items():
        mask = mask_of(operation_of(operation, items))
        for item in one_or_more(items, f"can_only {operation}"):
            if isinstance(item.value, Mapping):
                yield _with_exceptions(item, mask)
            else:
                yield ListedAccess(operations=mask, resource=parsed(item, "a resource", parse_resource))


def _with_exceptions(item: Node, mask: int) -> ListedAccess:
    item.check_keys((*TYPES, *_MORE), "a resource")
    (word, *more) = [key for key in item.mapping() if key in TYPES] or ("",)
    if not word or more:
        raise item.error(f"expected one of {', '.join(TYPES)}, and its name")
    resource = parsed(item.required(word), word, lambda text: parse_resource(f"{word}:{text}"))
    but = tuple(_exception(each, resource) for each in one_or_more(item.get("except"), "except"))
    hosts = ListedHosts(
        entries=tuple(_host(each) for each in one_or_more(item.get("from"), "from")),
        but=tuple(_host(each) for each in one_or_more(item.get("not_from"), "not_from")),
    )
    return ListedAccess(operations=mask, resource=resource, but=but, hosts=hosts)


def _exception(node: Node, resource: ResourcePattern) -> ResourcePattern:
    kind = ResourceType(resource.resource_type)
    pattern = parsed(node, "except", lambda text: parse_names(kind, text))
    if resource.pattern_type == PatternType.LITERAL or not pattern.name.startswith(resource.name):
        raise node.error("except: expected a part of the names that it is an exception of")
    return pattern


def _host(node: Node) -> str:
    """Return an address in the form of `host_address`, or a CIDR range."""
    text = node.text("a host")
    if "/" in text:
        if cidr_range(text) is None:
            raise node.error(f"host {text[:60]!r}: expected an IP address or a CIDR range")
        return text
    try:
        return host_address(text)
    except ConfigError as error:
        raise node.error(str(error)) from error


# One test of a YAML file, and its cases.


_ABOUT_PRINCIPALS = ("can", "cannot", "can_only", "intents", "reason")
_EXPECTED = (*_ABOUT_PRINCIPALS, "who_can", "same_as", "no_new_access")
_KEYS = ("name", "principal", "except", "host", *_EXPECTED)


@frozen(kw_only=True)
class CaseNodes:
    """A test: its principal, and its expectations."""

    name: str
    """Its own, or that of its line."""
    node: Node
    directory: Path
    """The directory of the file, the base of its paths."""

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
        for key, make_case in (("same_as", same_as_case), ("no_new_access", no_new_access_case)):
            member = self.node.get(key)
            if member is not None:
                yield make_case(member, test=self.name, directory=self.directory)

    def _subjects(self) -> list[CaseSubject]:
        """Return each principal from each host."""
        principals, hosts = self.node.get("principal"), self.node.get("host")
        if not any(self.node.get(key) for key in _ABOUT_PRINCIPALS):
            for key in ("principal", "except", *(("host",) if self.node.get("who_can") is None else ())):
                member = self.node.get(key)
                if member is not None:
                    raise member.error(f"{key}: only together with {', '.join(_ABOUT_PRINCIPALS)}")
            return []
        if principals is None:
            raise self.node.error("a test has no principal: expected TYPE:NAME, or User:* for all users")
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
        for text, node in self._members("reason"):
            operation, resource = _operation_on(text, node)
            if operation is AclOperation.ALL or resource.pattern_type != PatternType.LITERAL:
                raise node.error(f"reason {text[:60]!r}: expected one operation on one resource")
            for subject in subjects:
                if subject.principal == WILDCARD_PRINCIPAL:
                    raise node.error("reason: expected one principal, not all users")
                yield Reason(
                    test=self.name,
                    origin=node.origin,
                    subject=subject,
                    operation=operation,
                    resource=resource,
                    expected=parsed(node, f"the reason of {text}", parse_rule_text),
                )

    def _who_can(self) -> Iterator[Case]:
        hosts = _addresses(self.node.get("host"))
        for text, node in self._members("who_can"):
            operation, resource = _operation_on(text, node)
            expected = tuple(dict.fromkeys(_holder(each) for each in node.items(f"who_can {text}")))
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


def _operation_on(text: str, node: Node) -> tuple[AclOperation, ResourcePattern]:
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


# JSON lines of requests, each with the expected decision, and optionally the rule that decides it.


_REQUEST_KEYS = (
    "principal", "host", "operation", "resourceType", "resourceName", "kind", "decision", "rule", "name", "error",
)  # fmt: skip
_DECISIONS = ("ALLOWED", "DENIED", ERROR)
_BY_TYPE = "byResourceType"
_KAFKAS = (f"{Basis.MATCHING_ACL.value}(", *(basis.value for basis in Basis))

_address = lru_cache(1 << 16)(host_address)


def read_request_cases(path: str) -> Iterator[Decides]:
    """Yield a case for each line: a request as `aclog authorize --requests` takes it, with its answer.

    Raises:
        ConfigError: a line that is no such object, with its number; or a damaged file.
        OSError: the file cannot be read.

    """
    file = display_name(path)
    for number, line in numbered(path):
        try:
            yield _case(parse_object(line), FileOrigin(file=file, line=number))
        except ConfigError as error:
            raise ConfigError(f"{file}:{number}: {error}") from error


def _case(value: dict[str, object], origin: FileOrigin) -> Decides:
    for key in value:
        if key not in _REQUEST_KEYS:
            near = get_close_matches(key, _REQUEST_KEYS, 1)
            hint = f"did you mean {near[0]}?" if near else f"expected {', '.join(_REQUEST_KEYS)}"
            raise ConfigError(f"unknown key {key[:60]!r}: {hint}")
    decision = text_field(value, "decision")
    if decision not in _DECISIONS:
        raise ConfigError(f"decision {decision[:40]!r} is not one of {', '.join(_DECISIONS)}")
    return Decides(
        test=text_field(value, "name") if "name" in value else f"line {origin.line}",
        origin=origin,
        request=Request(
            principal=text_field(value, "principal"),
            host=_address(text_field(value, "host")),
            operation=enum_field(value, "operation", AclOperation),
            resource_type=enum_field(value, "resourceType", ResourceType),
            resource_name=_resource_name(value),
        ),
        by_type=value.get("kind") is not None,
        decision=decision,
        rule=_rule(text_field(value, "rule")) if value.get("rule") is not None else None,
    )


def _resource_name(value: dict[str, object]) -> str:
    kind = value.get("kind")
    if kind not in (None, _BY_TYPE):
        raise ConfigError(f"kind must be {_BY_TYPE} or absent")
    if kind is not None:
        if "resourceName" in value or value.get("rule") is not None:
            raise ConfigError(f"with kind {_BY_TYPE} there is no resourceName, and no rule")
        return ""
    return text_field(value, "resourceName")


def _rule(text: str) -> str | RuleText:
    """Return Kafka's own text as it is, and anything else as a short form."""
    return text if text.startswith(_KAFKAS) else parse_rule_text(text)


# A file of tests of rules.


@frozen(kw_only=True)
class RuleTestFile:
    """The content of a file of tests."""

    path: str
    """The path as given."""
    cases: tuple[Case, ...]
    """In the order of the file; never empty."""
    source: NamedSource | None = None
    """The rules under test; None if not stated."""
    settings: AuthorizerSettings = field(factory=AuthorizerSettings)
    """The settings of the authorizer; None where not stated."""


# YAML files of tests (docs/testing-rules.md).


_SETTINGS = ("super-users", "allow-everyone-if-no-acl-found", "semantics", "kafka-version", "cidr")
_FILE_KEYS = ("rules", *_SETTINGS, "tests")


def read_yaml_cases(path: str) -> RuleTestFile:
    """Return the tests of a YAML file.

    Raises:
        ConfigError: not YAML, an unknown key, a name that two tests have, or something that is not understood.
        OSError: the file cannot be read.

    """
    file = Path(path)
    documents = SourceFile(DirectoryTree(path), file.name).whole_documents()
    if len(documents) != 1:
        what = "no test" if not documents else f"{len(documents)} documents: expected one"
        raise ConfigError(f"{path}: {what}")
    (root,) = documents
    root.check_keys(_FILE_KEYS, "a file of tests")
    rules = root.get("rules")
    cases = tuple(_cases(root.required("tests", "a file of tests"), file.parent))
    return RuleTestFile(
        path=path,
        cases=cases,
        source=None if rules is None else parse_source(rules, file.parent),
        settings=_settings(root),
    )


def _cases(tests: Node, directory: Path) -> Iterator[Case]:
    names: dict[str, Node] = {}
    items = tests.items("tests")
    if not items:
        raise tests.error("tests is empty: expected at least one test")
    for item in items:
        test = CaseNodes.of(item, directory)
        first = names.setdefault(test.name, item)
        if first is not item and item.get("name") is not None:
            raise item.error(f"the name {test.name[:60]!r} is that of the test on line {first.line}")
        yield from test.cases()


def _settings(root: Node) -> AuthorizerSettings:
    users, everyone, semantics, version, cidr = (root.get(key) for key in _SETTINGS)
    value = None if semantics is None else semantics.text("semantics")
    if semantics is not None and value not in SEMANTICS:
        raise semantics.error(f"semantics {value!r} is not one of {', '.join(SEMANTICS)}")
    return AuthorizerSettings(
        super_users=None if users is None else _super_users(users),
        allow_everyone=None if everyone is None else everyone.boolean("allow-everyone-if-no-acl-found"),
        semantics=value,
        cidr=_ranges(version, cidr),
    )


def _ranges(version: Node | None, cidr: Node | None) -> bool | None:
    """Return whether a host with a slash is a range for the deciding Kafka; None if the file does not state it."""
    ranges = None if cidr is None else cidr.boolean("cidr")
    if version is None:
        return ranges
    try:
        named = named_generation(
            version.text("kafka-version"),
            ranges,
            version_name="kafka-version",
            ranges_text=f"cidr: {str(ranges).lower()}",
        )
    except ConfigError as error:
        raise version.error(str(error)) from error
    return named is Generation.V4_4


def _super_users(node: Node) -> str:
    """Return a list of principals, or a text in the syntax of super.users, as that text."""
    if isinstance(node.value, tuple):
        text = ";".join(item.text("a super user") for item in node.items("super-users"))
    else:
        text = node.text("super-users")
    try:
        parse_super_users(text)
    except ConfigError as error:
        raise node.error(str(error)) from error
    return text


# Reads files of tests: `*.jsonl`, gzipped or not, and `-` are requests with their decisions, anything else is YAML.


def read_test_file(path: str) -> RuleTestFile:
    """Return the tests of a file.

    Raises:
        ConfigError: the file is malformed, has no test, or an invalid value; with file and line.
        OSError: it cannot be read.

    """
    if path == STDIN or path.endswith((".jsonl", ".jsonl.gz")):
        cases = tuple(read_request_cases(path))
        if not cases:
            raise ConfigError(f"{path}: no test: expected a request in each line")
        return RuleTestFile(path=path, cases=cases)
    if Path(path).is_dir():
        raise ConfigError(f"{path}: a directory: expected a file of tests")
    return read_yaml_cases(path)
