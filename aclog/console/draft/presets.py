"""The least rules that a client needs for its work, as lines of a draft."""

from collections.abc import Iterable, Iterator

from attrs import evolve, frozen

from aclog.analysis.answers.intents import Intent
from aclog.authorizer.acl import ResourcePattern, ResourceType, acl_text
from aclog.authorizer.name_notation import rule_pattern
from aclog.authorizer.rule_content import contents_of
from aclog.console.draft.effect import DraftEffect
from aclog.metalog.errors import ConfigError
from aclog.metalog.json_object import check_unicode
from aclog.planning.granting.asked import Asked
from aclog.planning.granting.grant import grant
from aclog.planning.granting.needs import IntentResources, asked_needs

INTENTS = Intent.PRODUCE, Intent.CONSUME, Intent.TRANSACT, Intent.STREAM


@frozen(kw_only=True)
class Preset:
    """What a client is for."""

    intent: Intent
    principal: str
    topics: tuple[str, ...] = ()
    """Those that a stream reads, or that a client works with."""
    groups: tuple[str, ...] = ()
    """Of a stream the one that is the application id."""
    transactional_ids: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    """Topics that a stream writes."""


def preset_lines(preset: Preset, effect: DraftEffect) -> list[str]:
    """Return the lines to add to a draft; none if all is allowed already. Names are those of questions: `ord*`.

    Raises:
        ConfigError: something is missing, or no name. RefusedError: a rule denies it.

    """
    principal = preset.principal.strip()
    check_unicode("the principal", principal)
    if ":" not in principal:
        raise ConfigError(f"principal {principal[:80]!r}: expected TYPE:NAME, such as User:alice")
    topics = tuple(_patterns(ResourceType.TOPIC, preset.topics))
    is_stream = preset.intent is Intent.STREAM
    others = (
        *_patterns(ResourceType.GROUP, preset.groups),
        *_patterns(ResourceType.TRANSACTIONAL_ID, preset.transactional_ids),
    )
    resources = IntentResources(
        named=others if is_stream else (*topics, *others),
        inputs=topics if is_stream else (),
        outputs=tuple(_patterns(ResourceType.TOPIC, preset.outputs)),
    )
    needs = asked_needs(preset.intent, resources, whole=True)
    # What is open as long as no rule is there is allowed by rules: the first one closes it to others.
    settings = evolve(effect.after.settings, allow_everyone=False)
    found = grant(Asked(principal=principal, needs=needs), contents_of(effect.after.acls), settings)
    return [f"+ {acl_text(acl)}" for acl in found.added]


def _patterns(kind: ResourceType, names: Iterable[str]) -> Iterator[ResourcePattern]:
    for name in names:
        check_unicode("the name", name)
        yield rule_pattern(kind, name)
