"""Intents of a test: a list of resources, or a mapping that says which is which."""

from collections.abc import Iterator
from difflib import get_close_matches

from aclog.analysis.answers.intents import Intent
from aclog.analysis.rule_tests.intent_needs import (
    Application,
    IntentNeeds,
    application_resources,
    intent_needs,
    stream_needs,
)
from aclog.analysis.rule_tests.tested_resource import parse_names, parse_resource
from aclog.authorizer.acl import ResourcePattern, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.node import Node

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
    """Return the resources that a test names for an intent, and what the intent needs of them.

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
