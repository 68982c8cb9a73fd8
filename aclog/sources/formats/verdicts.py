"""The verdict on content that no format reads: known to hold no rule, or unread.

Content is known to hold no rule by a positive list: a kind of Kubernetes or of a tool of Kafka that makes no ACL, or a
structure without a key of a rule. A word in a name or in a text is never enough for that verdict; it may be for the
other one.
"""

import base64
import binascii
import codecs
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from attrs import evolve

from aclog.authorizer.acl import FileOrigin, StatedCluster
from aclog.authorizer.codes import AclOperation
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.nodes import Node, scalars
from aclog.sources.formats.rule import ReadContext, Resource, SourceFile, compiled, folded_name, resources
from aclog.sources.formats.unread import Located, UnreadKind

if TYPE_CHECKING:
    from aclog.sources.formats.yaml_nodes import BrokenDocument

# Keys and values by which a structure states a rule, in the spellings of all tools.


_LONGEST = 60
"""The longest name in messages, in characters."""
_WORD = re.compile(r"ACLs(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ACL_WORDS = frozenset({"acl", "acls"})
_PARTS_OF_ACLS = frozenset({"principal", "principals", "operation", "operations", "permission", "resource"})
_PRINCIPALS = frozenset(
    {"principal", "principals", "grantedto", "user", "users", "username", "kafkauser", "account", "serviceaccount"}
)
_OPERATIONS = frozenset(
    {"operation", "operations", "operationtype", "permission", "permissions", "permissiontype", "action", "actions"}
    | {"access", "accesses", "accesspolicy", "accesstype", "accessrole"}
    | {"role", "roles", "grant", "grants", "allow", "deny"}
)
_RESOURCES = frozenset(
    {"topic", "topics", "topicname", "topicnames", "topicpattern", "group", "groups", "consumergroup", "cluster"}
    | {"transactionalid", "transactionalids", "resource", "resources", "resourcename", "resourcetype", "pattern"}
    | {"patterntype", "resourcepatterntype"}
)
_CLIENTS = frozenset({"produces", "consumes", "producers", "consumers"})
"""Keys of clients whose items are principals or topics."""
_OPERATION_NAMES = frozenset(folded_name(each.name) for each in AclOperation if each > AclOperation.ANY) | {
    *("PRODUCE", "CONSUME", "PRODUCER", "CONSUMER", "READWRITE", "PUB", "SUB", "PUBSUB", "OWNER", "*"),
    *("ACCESSROLEPRODUCER", "ACCESSROLECONSUMER", "ACCESSROLEADMIN", "ACCESSROLETOPICADMIN"),
}
_RULE_KINDS = re.compile(
    r"kafka_?(user|principal\w*|\w*acl)s?(list)?|accesscontrol\w*|redpandarole(list)?", re.IGNORECASE
)
"""Kinds that make ACLs, including those of unknown operators and misspelled ones."""
_OF_CREDENTIALS = re.compile(r"(kafka\.)?jikkou\.io/")
"""Where a KafkaUser has passwords, and no rules."""


def rule_in(node: Node) -> Node | None:
    """Return the first value that states a rule as far as its keys show, at any depth; None if no value does."""
    return next(_rules_in(node), None)


def _rules_in(node: Node) -> Iterator[Node]:
    if isinstance(node.value, tuple):
        for item in node.value:
            yield from _rules_in(item)
    if not isinstance(node.value, Mapping):
        return
    yield from _own_rules(node, node.value)
    for member in node.value.values():
        yield from _rules_in(member)


def _own_rules(node: Node, members: Mapping[str, Node]) -> Iterator[Node]:
    """Yield the members of a mapping by which it states a rule."""
    kind, version = node.get("kind"), node.get("apiVersion")
    if kind is not None and _RULE_KINDS.fullmatch(kind.raw) and (node.get("spec") or node.get("items")):
        is_credential = version is not None and _OF_CREDENTIALS.match(version.raw) and kind.raw.startswith("KafkaUser")
        yield from () if is_credential else (kind,)
    keys = {"".join(_words(key)): member for key, member in members.items()}
    for key, member in members.items():
        words = _words(key)
        if _ACL_WORDS.intersection(words) and (_PARTS_OF_ACLS.intersection(words) or any(_texts(member))):
            if _PARTS_OF_ACLS.intersection(words) or not _is_scalar(member) or _names_operation(member):
                yield member
        elif "".join(words) in _CLIENTS and not _is_scalar(member) and any("/" not in each for each in _texts(member)):
            yield member  # with `/` they are types of media, of the description of an interface
    others = keys.keys() & (_PRINCIPALS | _RESOURCES)
    for key in sorted(keys.keys() & _OPERATIONS) if others else ():
        if _names_operation(keys[key]):
            yield keys[key]


def _words(key: str) -> list[str]:
    """Return the words of a key in any spelling, in lower case: `aclPrincipal`, `acl_principal` and `acl-principal`."""
    return [word.lower() for word in _WORD.findall(key)]


def _is_scalar(node: Node) -> bool:
    return not isinstance(node.value, Mapping | tuple)


def _texts(node: Node) -> Iterator[str]:
    """Yield the texts at any depth that are neither empty, nor numbers, nor true or false."""
    for scalar in scalars(node):
        if isinstance(scalar.value, str) and scalar.value:
            yield scalar.value
        elif scalar.tag is not None:
            yield scalar.raw


def _names_operation(node: Node) -> bool:
    """Return whether one of the texts is an operation of a rule, or comes from elsewhere."""
    keys = node.value.keys() if isinstance(node.value, Mapping) else ()
    for text in (*_texts(node), *keys):
        if "{{" in text or "${" in text:
            return True
        if any(folded_name(part.strip().replace("-", "")) in _OPERATION_NAMES for part in re.split(r"[,|:;\s]", text)):
            return True
    return False


# Text that states rules: of a template, of a broken document, or inside of another resource.


_TOOL = re.compile(r"(?i:kafka[-_]?acls?)\b|\bAclCommand\b")
"""The tool of Kafka, or the name of a variable for it."""
_COMMAND = re.compile(rf"{_TOOL.pattern}|--(?:allow|deny)-principal\b|\b(?:rpk|confluent|aclog|kafkactl|kcl)\s")
"""What is in every command that changes ACLs."""
_FLAG = re.compile(r"(?<![\w-])--(?:add|remove|(?:allow|deny)-principal)(?![\w-])")
"""A flag of the tool that changes ACLs, which may be on another line than its name."""
_CHANGES_ACLS = (
    r"kafka[-_]?acls?\b[^\n]*(?:\\\r?\n[^\n]*)*?\s--(?:add|remove|allow-principal|deny-principal|allowprincipal)\b"
    r"|--(?:allow|deny)-principal\b"
    r"|\b(?:rpk\s+(?:security\s+)?acl|confluent\s+kafka\s+acl|aclog\s+acls)\s+(?:create|delete|add|remove)\b"
    r"|\brpk\s+security\s+role\s+(?:assign|unassign|create|delete)\b|\bkcl\s+admin\s+acls?\b"
    r"|\bkafkactl\s+(?:create|delete)\s+(?:acl|access-control-list)\b"
)
"""A command that changes ACLs, on lines that are continued: an expression of RE2, which takes linear time."""
_PROGRAM = re.compile(
    r"\b(?:AclBinding|KafkaAcl|kafka\.Acl|CreateAclsRequest)\s*\(|(?i:create_?acls?(?:async)?)\s{0,9}\("
    r"|\bnew\s{1,9}(?:\w{1,99}\.)?(?:Acl|KafkaUser|KafkaAcl)\s{0,9}\("
)
"""A call that makes an ACL, in a program."""
_KIND = re.compile(r"""["']?\bkind["']?[ \t]*:[ \t]*["']?([^\s"',}#]*)""")
_PRINCIPAL = re.compile(r"""\bprincipals?["']?[ \t]*[:=]\s*(?:-\s*|\[\s*)?["']?[A-Za-z]+:[^\s/]""")
"""A principal with its type, as the value of a key."""
_ACL_NAME = re.compile(
    r"(?<![A-Za-z])[aA]cls?(?![a-z])|(?<=[a-z])Acls?(?![a-z])|\bACL[sS]?\b|(?<=_)ACL[sS]?(?![A-Za-z])"
)
_KEY = re.compile(r"""(?<![\w.-])["']?[\d_.-]{0,9}([A-Za-z][\w.-]{0,99})["']?[ \t]*[:=]""")
"""A key: it begins no word in the middle, and a longer one states no rule, so that it takes linear time."""


def command_in(text: str) -> int | None:
    """Return the line, from 1, of a command that changes ACLs; None if no line has one."""
    if _COMMAND.search(text) is None:
        return None
    match: Any = compiled(_CHANGES_ACLS).search(text)
    if match is None and _TOOL.search(text) is not None:
        match = _FLAG.search(text)
    return None if match is None else _line(text, match.start())


def rule_in_text(text: str) -> int | None:
    """Return the line, from 1, at which a text in YAML, HCL or a template may state a rule; None: nowhere."""
    command = command_in(text)
    if command is not None:
        return command
    for kind in _KIND.finditer(text):
        if _RULE_KINDS.fullmatch(kind[1]) or kind[1].startswith("{{"):
            return _line(text, kind.start())
    match = _ACL_NAME.search(text)
    if match is not None:
        return _line(text, match.start())
    first = {"".join(_words(key[1])): key.start() for key in reversed(list(_KEY.finditer(text)))}
    clients = first.keys() & _CLIENTS if first.keys() & {"services", "projects", "topics"} else frozenset()
    if first.keys() & {"topics", "groups", "transactionalids"}:
        clients |= first.keys() & {"users"}
    match = _PRINCIPAL.search(text)
    if match is not None:
        return _line(text, match.start())
    pairs = first.keys() & _OPERATIONS if first.keys() & (_PRINCIPALS | _RESOURCES) else frozenset()
    operations = [key for key in pairs if _OPERATION_VALUE.match(text, first[key])]
    places = [first[key] for key in (*clients, *operations)]
    return _line(text, min(places)) if places else None


_OPERATION_VALUE = re.compile(
    r"[\w.\"'-]+[ \t]*[:=]\s*(?:-\s*|\[\s*)?[\"']?(?:\{\{|\$\{|(?i:"
    + "|".join(
        sorted(
            (each.name.replace("_", "_?") for each in AclOperation if each > AclOperation.ANY), key=len, reverse=True
        )
    )
    + r"|allow|deny|produce|consume)\b)"
)
"""A key with the first value that it has: an operation, or a value that comes from elsewhere."""


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def embedded_in(node: Node) -> Node | None:
    """Return the first text inside of a document that states rules itself, at any depth; None if no value does."""
    for scalar in scalars(node):
        text = scalar.value
        if isinstance(text, str) and len(text) > _SHORTEST and _states_rules(text):
            return scalar
    return next((each for each, text in _command_lines(node) if command_in(text) is not None), None)


_SHORTEST = len("acls: [a]")


_WORDS_OF_COMMANDS = ("entrypoint", "command", "cmd", "args", "argv")
"""Keys whose values are the words of one command, in this order."""


def _command_lines(node: Node) -> Iterator[tuple[Node, str]]:
    """Yield the lists of words at any depth, each as one line: a command as containers and playbooks state it."""
    if isinstance(node.value, Mapping):
        parts = [node.value[key] for key in _WORDS_OF_COMMANDS if key in node.value]
        if len(parts) > 1:
            yield parts[0], " ".join(text for part in parts for text in _texts(part))
        for member in node.value.values():
            yield from _command_lines(member)
    elif isinstance(node.value, tuple):
        words = [text for item in node.value if _is_scalar(item) for text in _texts(item)]
        if len(words) > 1:
            yield node, " ".join(words)
        for item in node.value:
            yield from _command_lines(item)


def _states_rules(text: str) -> bool:
    if command_in(text) is not None:
        return True
    if "\n" not in text and "{" not in text:
        return False
    from aclog.sources.formats.yaml_nodes import parse_documents  # here: few documents hold another one

    try:
        documents = parse_documents(text.encode(errors="replace"), "")
    except ConfigError:
        return bool(_KEY.search(text)) and rule_in_text(text) is not None
    return any(rule_in(each) is not None for each in documents)


# Resources in Kubernetes' manner that make no ACL: all kinds of a group, or some.


_GROUPS = frozenset(
    {
        *("apps", "batch", "autoscaling", "policy", "extensions", "cert-manager.io", "monitoring.coreos.com"),
        *(
            "gateway.networking.k8s.io",
            "snapshot.storage.k8s.io",
            "metrics.k8s.io",
            "core.strimzi.io",
            "acme.cert-manager.io",
        ),
        *(
            f"{name}.k8s.io"
            for name in (
                *("admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization"),
                *("certificates", "coordination", "discovery", "events", "flowcontrol.apiserver", "networking", "node"),
                *("rbac.authorization", "resource", "scheduling", "storage", "internal.apiserver", "storagemigration"),
            )
        ),
    }
)
"""Groups without a kind that makes ACLs: Kubernetes' own, and those of well-known extensions."""
_KINDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "": frozenset(
            {
                *("Binding", "ComponentStatus", "ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node"),
                *("PersistentVolume", "PersistentVolumeClaim", "Pod", "PodTemplate", "ReplicationController"),
                *("ResourceQuota", "Secret", "Service", "ServiceAccount", "Status"),
                # of ns4kafka, which has the same version
                *("Topic", "Connector", "ConnectCluster", "RoleBinding", "Schema"),
            }
        ),
        "kafka.strimzi.io": frozenset(
            {
                *("Kafka", "KafkaTopic", "KafkaConnect", "KafkaConnectS2I", "KafkaConnector", "KafkaBridge"),
                *("KafkaMirrorMaker", "KafkaMirrorMaker2", "KafkaNodePool", "KafkaRebalance"),
            }
        ),
        "kustomize.config.k8s.io": frozenset(),
    }
)
"""Kinds that make no ACL, of groups with other kinds that may."""


def is_known(resource: Resource) -> bool:
    """Return whether a resource is of a kind that makes no ACL."""
    group = resource.api_version.rpartition("/")[0]
    return bool(resource.api_version) and (group in _GROUPS or resource.kind in _KINDS.get(group, ()))


def judge_resource(resource: Resource, context: ReadContext) -> None:
    """Count a resource that no format reads, or report it as unread; report the topic that it declares."""
    _declare_topic(resource, context)
    change = next(_changes_of_users(resource), None)
    if change is not None:
        why = f"a {resource.kind[:_LONGEST]} changes, or may change, KafkaUsers: give what it renders (--acls -)"
        context.not_read(UnreadKind.KUSTOMIZATION, change, why, name=resource.kind[:_LONGEST])
        return
    if not is_known(resource):
        rule = rule_in(resource.node)
        if rule is not None:
            version = f"apiVersion {resource.api_version[:_LONGEST]}" if resource.api_version else "no apiVersion"
            why = f"a {resource.kind[:_LONGEST]} of {version} may make rules, and no format reads it"
            context.not_read(UnreadKind.RESOURCE, rule, why, name=resource.kind[:_LONGEST])
            return
    embedded = embedded_in(resource.node) or embedded_in(_decoded(resource))
    if embedded is not None:
        why = f"text inside of a {resource.kind[:_LONGEST]} that states rules, or a command that does"
        context.not_read(UnreadKind.EMBEDDED, embedded, why, name=resource.kind[:_LONGEST])
        return
    _count(resource, context)


_TOPICS = {
    ("kafka.strimzi.io", "KafkaTopic"): "topicName",
    ("cluster.redpanda.com", "Topic"): "overwriteTopicName",
    ("kafka.jikkou.io", "KafkaTopic"): "",
    ("v1", "Topic"): "",
}
"""The resources that declare topics, by group and kind, and the key of the name if it is not that of the resource; the
last is ns4kafka's."""
_TOPIC_KIND = re.compile(r"""\bkind["']?[ \t]*:[ \t]*["']?(?:Kafka)?Topic(?:List)?\b""")


def _declare_topic(resource: Resource, context: ReadContext) -> None:
    key = _TOPICS.get((resource.api_version.partition("/")[0], resource.kind))
    if key is None:
        return
    spec, metadata = resource.node.get("spec"), resource.node.get("metadata")
    stated = None if spec is None else spec.get(key)
    name = stated or (None if metadata is None else metadata.get("name"))
    text = name.value if name is not None and isinstance(name.value, str) else None
    context.declare_topic(text, resource.node, labelled_cluster(resource))


def declare_unknown_topics(text: str, place: Located, context: ReadContext) -> None:
    """Report that topics of unknown names may be declared by a text that is not read, such as a template."""
    if _TOPIC_KIND.search(text):
        context.declare_topic(None, place)


def labelled_cluster(resource: Resource) -> StatedCluster | None:
    """Return the Kafka that a resource of Strimzi is of, by its label; None without one."""
    metadata = resource.node.get("metadata")
    labels = None if metadata is None else metadata.get("labels")
    label = None if labels is None else labels.get("strimzi.io/cluster")
    return StatedCluster(basis="label strimzi.io/cluster", name=label.raw) if label is not None and label.raw else None


_CHANGES = ("namePrefix", "nameSuffix", "components", "postBuild", "patchesStrategicMerge", "patchesJson6902")
"""Keys of Flux and Argo CD by which they change the resources of a directory, beside `patches`."""


def _changes_of_users(resource: Resource) -> Iterator[Node]:
    """Yield what changes KafkaUsers that are stated elsewhere: in resources of Flux and Argo CD, as kustomize does."""
    group, spec = resource.api_version.rpartition("/")[0], resource.node.get("spec")
    if spec is None:
        return
    if group == "kustomize.toolkit.fluxcd.io" and resource.kind == "Kustomization":
        yield from _kustomized(spec)
    elif group == "argoproj.io" and resource.kind in ("Application", "ApplicationSet"):
        for part in _at_any_depth(spec, "kustomize"):
            yield from _kustomized(part)
    elif group == "helm.toolkit.fluxcd.io" and resource.kind == "HelmRelease":
        for part in _at_any_depth(spec, "postRenderers"):
            for renderer in _at_any_depth(part, "kustomize"):
                yield from _kustomized(renderer)


def _at_any_depth(node: Node, key: str) -> Iterator[Node]:
    if isinstance(node.value, Mapping):
        for name, member in node.value.items():
            if name == key:
                yield member
            else:
                yield from _at_any_depth(member, key)
    elif isinstance(node.value, tuple):
        for item in node.value:
            yield from _at_any_depth(item, key)


def _kustomized(node: Node) -> Iterator[Node]:
    """Yield the members that change resources, without patches of other kinds."""
    for key in _CHANGES:
        member = node.get(key)
        if member is not None and member.value not in (None, "", (), {}):
            yield member
    for patch in node.items_of("patches"):
        target = patch.get("target")
        kind = None if target is None else target.get("kind")
        if kind is None or kind.raw == "KafkaUser" or not kind.raw.isalpha():
            yield patch  # a selector is a regular expression: a plain word selects no other kind


def _decoded(resource: Resource) -> Node:
    """Return the resource; of a Secret, with its data decoded."""
    data = resource.node.get("data") if resource.kind == "Secret" else None
    if data is None or not isinstance(data.value, Mapping):
        return resource.node
    return evolve(data, value={key: _plain(each) for key, each in data.value.items()})


def _plain(node: Node) -> Node:
    try:
        return evolve(node, value=base64.b64decode(node.raw, validate=True).decode())
    except (binascii.Error, ValueError):
        return node


def _count(resource: Resource, context: ReadContext) -> None:
    context.ignore(resource.kind[:_LONGEST] or "document without a kind")
    node = resource.node if resource.kind == "Kafka" else None
    for key in ("spec", "kafka", "authorization"):
        node = None if node is None else node.get(key)
    if node is None:
        return
    kind = node.get("type")
    if kind is not None and kind.raw != "simple":
        context.ignore(f"authorization of a Kafka by {kind.raw[:_LONGEST]}")
    for _ in node.items_of("superUsers"):
        context.ignore("super user of a Kafka")


# Files that no format claims.


YAML_SUFFIXES = (".yaml", ".yml", ".json")
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""Names of files."""
_TEMPLATES = (".tpl", ".tmpl", ".gotmpl", ".j2", ".jinja", ".jinja2", ".erb", ".hbs", ".mustache", ".ftl")
_TABLES = (".csv", ".txt", ".acls", ".tfstate", ".jsonl", ".ndjson")
_PROSE = (".md", ".rst", ".adoc", ".html", ".htm", ".ipynb", ".patch", ".diff", ".lock", ".svg", ".log", ".txt")
_POINTERS = {
    b"version https://git-lfs.github.com/spec/": "a pointer to Git LFS: replace it by its content first",
    b"\0GITCRYPT": "encrypted by git-crypt: decrypt it first",
}
"""How files begin whose content is not there."""
_MARKS = (b"ACLs for ", b"KafkaPrincipal", b"KafkaUser", b"kafka_acl", b"principal")
_TEMPLATE = re.compile(r"\{\{|\{%|<%")
_HEAD = 8_192


def judge_file(file: SourceFile, context: ReadContext) -> None:
    """Count a file that no format claims, or report it as unread. Raises OSError, ConfigError: it cannot be read."""
    encoded = _encoding_problem(file)
    if encoded is not None:
        context.not_read(UnreadKind.ENCODED, FileOrigin(file=file.name, line=1), encoded)
        return
    if b"\0" in file.content[:_HEAD]:
        context.ignore("other file")
        return
    if file.has_suffix(*YAML_SUFFIXES) or file.base_name in KUSTOMIZATIONS:
        judge_documents(file, context)
        return
    text = file.content.decode(errors="replace")
    line = _program_line(text) if not file.has_suffix(*_PROSE) else None
    kind, why = UnreadKind.PROGRAM, "a script or a program that changes ACLs"
    if line is None and file.has_suffix(*_TEMPLATES) and not _is_prose_template(file):
        line = rule_in_text(text)
        kind, why = UnreadKind.TEMPLATE, "a template that may state rules: render it first, and give the result"
    if line is None and file.has_suffix(*_LANGUAGES):
        line = rule_in_text(text)
        kind, why = UnreadKind.TEMPLATE, "a configuration in a language that may state rules: render it first"
    if line is None and file.has_suffix(*_SETTINGS):
        line = _pair_in_settings(text)
        kind, why = UnreadKind.DOCUMENT, "keys of a rule in a file of an unknown tool"
    if line is None:
        context.ignore("other file")
    else:
        context.not_read(
            kind, FileOrigin(file=file.name, line=line), why, name="" if kind is UnreadKind.TEMPLATE else _suffix(file)
        )


_LANGUAGES = (".jsonnet", ".libsonnet", ".cue", ".dhall", ".pkl", ".kcl")
_SETTINGS = (".toml", ".properties", ".ini", ".env", ".conf", ".cfg")


def _pair_in_settings(text: str) -> int | None:
    """Return the line of the first key of a principal in settings that have a key of an operation as well, or None."""
    first: dict[str, int] = {}
    for key in _KEY.finditer(text):
        words = _words(key[1])
        if words:
            first.setdefault(words[-1].removesuffix("s"), key.start(1))
    return _line(text, first["principal"]) if {"principal", "operation"} <= first.keys() else None


def _is_prose_template(file: SourceFile) -> bool:
    """Return whether a template makes a page of documentation, such as `acl.md.tmpl`."""
    return file.base_name.lower().rpartition(".")[0].endswith(_PROSE)


def _program_line(text: str) -> int | None:
    match = _PROGRAM.search(text)
    return command_in(text) or (None if match is None else _line(text, match.start()))


def _suffix(file: SourceFile) -> str:
    return file.base_name.rpartition(".")[2][:_LONGEST] if "." in file.base_name else ""


def _encoding_problem(file: SourceFile) -> str | None:
    pointer = next((what for begin, what in _POINTERS.items() if file.content.startswith(begin)), None)
    if pointer is not None and (
        "." not in file.base_name or file.has_suffix(*YAML_SUFFIXES, *_TABLES, ".gz", ".tf", ".tfvars")
    ):
        return pointer
    start = file.content[:4]
    is_wide = start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    if is_wide and file.has_suffix(".txt", ".csv", ".acls"):
        return "text in UTF-16: save it as UTF-8"
    if is_wide or b"\0" in start:
        narrow = file.content.replace(b"\0", b"")
        if any(mark in narrow for mark in _MARKS):
            return "text in UTF-16 that may contain rules: save it as UTF-8"
    return None


def judge_documents(file: SourceFile, context: ReadContext) -> None:
    """Judge all documents of a YAML or JSON file that no format claims. Raises OSError."""
    judge_broken(file, context)
    if file.base_name in KUSTOMIZATIONS:
        context.ignore("kustomization")  # aclog.sources.formats.kustomize judges it
        return
    for node in file.documents:
        try:
            entries = list(resources([node]))
        except ConfigError:
            entries = []  # a kind that is no text
        if entries and all(each.kind for each in entries):
            for each in entries:
                judge_resource(each, context)
        else:
            _judge_document(file, node, context)


def _judge_document(file: SourceFile, node: Node, context: ReadContext) -> None:
    rule, name = rule_in(node), file.base_name[:_LONGEST]
    if rule is not None:
        why = "keys of a rule in a document of an unknown tool, such as values of Helm, a playbook or a Pulumi program"
        context.not_read(UnreadKind.DOCUMENT, rule, why, name=name)
        return
    embedded = embedded_in(node)
    if embedded is not None:
        why = "text inside of a document that states rules, or a command that does"
        context.not_read(UnreadKind.EMBEDDED, embedded, why, name=name)
        return
    context.ignore("other file")


def judge_broken(file: SourceFile, context: ReadContext) -> None:
    """Count the documents of a file that are not YAML; report those that may hold rules as unread. Raises OSError."""
    for document in file.broken_documents:
        is_template = _TEMPLATE.search(document.text) is not None
        place = FileOrigin(file=file.name, line=document.error_line)
        declare_unknown_topics(document.text, place, context)
        if file.base_name in KUSTOMIZATIONS:
            problem = f"{document.problem}, in a kustomization, which may change rules"
            context.not_read(UnreadKind.BROKEN, place, problem)
        elif (is_template and _is_of_known_kind(document.text)) or not _may_state_rules(file, document, context):
            context.ignore("template" if is_template else "document that is not YAML")
        elif is_template:
            why = "a template that may state rules: render it first, and give the result"
            context.not_read(UnreadKind.TEMPLATE, place, why)
        else:
            context.not_read(UnreadKind.BROKEN, place, f"{document.problem}, in a document that may state rules")


def _may_state_rules(file: SourceFile, document: "BrokenDocument", context: ReadContext) -> bool:
    node = document.node
    if node is None:
        return rule_in_text(document.text) is not None
    if context.claims(SourceFile.of_document(file, node, document.text)):
        return True
    try:
        entries = list(resources([node]))
    except ConfigError:
        entries = []
    makes_none = bool(entries) and all(map(is_known, entries))
    return (not makes_none and rule_in(node) is not None) or embedded_in(node) is not None


def _is_of_known_kind(text: str) -> bool:
    """Return whether a template makes resources of kinds only that make no ACL, without text that states rules."""
    kinds = _KIND_LINE.findall(text)
    versions = _VERSION_LINE.findall(text)
    if not kinds or len(kinds) != len(versions) or command_in(text) is not None:
        return False
    nowhere = Node(file="", line=1, value=None)
    return all(
        kind not in ("ConfigMap", "Secret") and is_known(Resource(nowhere, version, kind))
        for kind, version in zip(kinds, versions, strict=True)
    )


_KIND_LINE = re.compile(r"""^kind:[ \t]*["']?([^\s"'#]*)""", re.MULTILINE)
_VERSION_LINE = re.compile(r"""^apiVersion:[ \t]*["']?([^\s"'#]*)""", re.MULTILINE)
