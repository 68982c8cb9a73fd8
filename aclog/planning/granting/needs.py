"""What an intent needs on the resources that are named."""

from collections.abc import Iterable, Iterator

from attrs import evolve, frozen

from aclog.analysis.answers.intents import Intent, Need
from aclog.analysis.regions.topic_names import LONGEST, is_legal_topic
from aclog.analysis.rule_tests.intent_needs import Application, IntentNeeds, intent_needs, stream_needs
from aclog.authorizer.acl import WILDCARD, PatternType, ResourcePattern, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.planning.granting.patterns import is_every_name

_FLAGS = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
}


@frozen(kw_only=True)
class IntentResources:
    """The resources of an intent, as patterns of rules: LITERAL `*` is every name."""

    named: tuple[ResourcePattern, ...] = ()
    inputs: tuple[ResourcePattern, ...] = ()
    """Topics that a Streams application reads."""
    outputs: tuple[ResourcePattern, ...] = ()
    """Topics that it writes."""


def asked_needs(intent: Intent, resources: IntentResources, *, whole: bool) -> tuple[Need, ...]:
    """Return what an intent needs on all of the resources that are named, a need for each pattern.

    With `whole`, all that the intent needs must be named: somebody who is granted half of it can do nothing with it.

    Raises:
        ConfigError: a resource that the intent has no use for, a name that hardly can be meant, or one is missing.

    """
    for each in (*resources.named, *resources.inputs, *resources.outputs):
        _check_name(each, for_new_rule=whole)
    needs = _stream(resources) if intent is Intent.STREAM else _plain(intent, resources)
    if whole and intent is Intent.STREAM and not (resources.inputs or resources.outputs):
        raise ConfigError("intent stream: expected --input-topic or --output-topic, too: what it reads, what it writes")
    if whole and needs.some:
        missing = ", ".join(dict.fromkeys(_FLAGS[ResourceType(need.resource_type)] for need in needs.some))
        raise ConfigError(f"intent {intent}: expected {missing}, too: a client needs all of it")
    return tuple(_by_pattern(needs.named))


def _plain(intent: Intent, resources: IntentResources) -> IntentNeeds:
    if resources.inputs or resources.outputs:
        raise ConfigError(f"intent {intent}: --input-topic and --output-topic are of intent stream: expected --topic")
    return intent_needs(intent, resources.named)


def _stream(resources: IntentResources) -> IntentNeeds:
    """Return the needs of a Streams application; a transactional id stands for exactly-once processing."""
    by_type: dict[int, list[ResourcePattern]] = {}
    for each in resources.named:
        by_type.setdefault(each.resource_type, []).append(each)
    groups, transactions = by_type.pop(ResourceType.GROUP, []), by_type.pop(ResourceType.TRANSACTIONAL_ID, [])
    if by_type.pop(ResourceType.TOPIC, None):
        raise ConfigError("intent stream: expected --input-topic and --output-topic: what it reads, and what it writes")
    if by_type or len(groups) != 1 or groups[0].pattern_type != PatternType.LITERAL or is_every_name(groups[0]):
        raise ConfigError("intent stream: expected one --group, literal: the application id")
    application = groups[0].name
    if transactions not in ([], [evolve(groups[0], resource_type=ResourceType.TRANSACTIONAL_ID)]):
        raise ConfigError(
            f"intent stream: expected --transactional-id {application}, literal, for exactly-once processing, or none"
        )
    return stream_needs(
        Application(
            id=application,
            inputs=resources.inputs,
            outputs=resources.outputs,
            exactly_once=bool(transactions),
        )
    )


def _by_pattern(needs: Iterable[Need]) -> Iterator[Need]:
    found: dict[ResourcePattern, int] = {}
    for need in needs:
        for pattern in need.patterns:
            found[pattern] = found.get(pattern, 0) | need.operations
    for pattern, operations in found.items():
        yield Need(
            resource_type=ResourceType(pattern.resource_type), operations=operations, patterns=(pattern,), every=True
        )


def _check_name(pattern: ResourcePattern, *, for_new_rule: bool) -> None:
    kind, name = ResourceType(pattern.resource_type).name, pattern.name
    if not name:
        raise ConfigError(f"a {kind} with an empty name: expected a name")
    if not for_new_rule or is_every_name(pattern):
        return
    if name == WILDCARD:
        raise ConfigError(f"{kind} {name!r}: expected it without prefix: that is every name")
    if name.endswith(WILDCARD) and pattern.resource_type == ResourceType.TOPIC:
        raise ConfigError(
            f"{kind} {name!r}: a rule does not take * for any text: expected {name[:-1]!r} and "
            "--resource-pattern-type prefixed; `aclog acls add` takes such a name as it is"
        )
    if pattern.resource_type == ResourceType.TOPIC and not _is_legal(pattern):
        raise ConfigError(f"TOPIC {name!r}: no topic can have such a name")


def _is_legal(pattern: ResourcePattern) -> bool:
    is_prefix = pattern.pattern_type == PatternType.PREFIXED and len(pattern.name) < LONGEST
    return is_legal_topic(f"{pattern.name}x" if is_prefix else pattern.name)
