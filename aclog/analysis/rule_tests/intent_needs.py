"""What an intent needs of the resources that a test names: of each of them, all of it."""

from collections.abc import Sequence

from attrs import evolve, field, frozen

from aclog.analysis.answers.intents import Intent, Need, needs_of
from aclog.authorizer.acl import PatternType, ResourcePattern, ResourceType
from aclog.metalog.errors import ConfigError


@frozen(kw_only=True)
class IntentNeeds:
    """What is needed on every resource that is named, and what on one that is not, whichever."""

    named: tuple[Need, ...]
    """Each on one pattern."""
    some: tuple[Need, ...] = ()


@frozen(kw_only=True)
class Application:
    """A Streams application: its id, the topics that it reads and writes, and whether it processes exactly once."""

    id: str
    inputs: tuple[ResourcePattern, ...] = field(default=())
    outputs: tuple[ResourcePattern, ...] = field(default=())
    exactly_once: bool = False


def intent_needs(intent: Intent, resources: Sequence[ResourcePattern]) -> IntentNeeds:
    """Return what an intent other than STREAM needs.

    Raises:
        ConfigError: no resource, one of a type that the intent has no use for, or STREAM.

    """
    if intent is Intent.STREAM:
        raise ConfigError("intent stream: expected a mapping with application, inputs, outputs and exactly-once")
    if not resources:
        raise ConfigError(f"intent {intent}: no resource is named")
    given = {resource.resource_type for resource in resources}
    named: list[Need] = []
    some: list[Need] = []
    for need in needs_of(intent, resources):
        if need.resource_type in given:
            named += (evolve(need, patterns=(pattern,)) for pattern in need.patterns)
        else:
            some.append(need)
    return IntentNeeds(named=tuple(named), some=tuple(some))


def stream_needs(application: Application) -> IntentNeeds:
    """Return what a Streams application needs on its topics, its group, its internal topics and transactional ids."""
    group = _literal(ResourceType.GROUP, application.id)
    identity = [group]
    if application.exactly_once:
        identity.append(_literal(ResourceType.TRANSACTIONAL_ID, application.id))
    consuming = intent_needs(Intent.CONSUME, (group, *application.inputs)).named
    producing = intent_needs(Intent.PRODUCE, application.outputs).named if application.outputs else ()
    internal = (need for need in needs_of(Intent.STREAM, identity) if need.every)
    return IntentNeeds(named=(*consuming, *producing, *internal))


def application_resources(application: Application) -> tuple[ResourcePattern, ...]:
    """Return the resources that name an application, for people."""
    return (_literal(ResourceType.GROUP, application.id), *application.inputs, *application.outputs)


def _literal(kind: ResourceType, name: str) -> ResourcePattern:
    return ResourcePattern(resource_type=kind, name=name, pattern_type=PatternType.LITERAL)
