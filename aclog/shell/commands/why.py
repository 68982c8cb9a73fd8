"""`why`: a decision and its explanation."""

from collections.abc import Iterable, Iterator

from aclog.analysis.answers.set_decision import explained
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import (
    CLUSTER_NAME,
    AclOperation,
    PatternType,
    ResourcePattern,
    ResourceType,
    find_name,
    parse_name,
)
from aclog.authorizer.explain_options import ExplainOptions
from aclog.authorizer.explanation_text import explanation_lines
from aclog.authorizer.hosts import host_address
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.name_notation import asked_pattern
from aclog.metalog.errors import ConfigError
from aclog.shell.arguments import Argument, Arguments, Count, Option, Signature
from aclog.shell.command import Command, Line
from aclog.shell.settings import SETTINGS, given_settings, settings_of
from aclog.shell.state import ShellState
from aclog.snapshots.moments import moment_text

DEFAULT_HOST = "127.0.0.1"
_HOST = Option(flag="--host", value="H", help=f"The client's address; by default {DEFAULT_HOST}.")
_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)
_PATTERN = Option(
    flag="--resource-pattern-type",
    value="TYPE",
    help="Take names as they are: literal, or prefixed for all that begin so.",
)
_TYPES = [kind for kind in ResourceType if kind not in {ResourceType.UNKNOWN, ResourceType.ANY}]
_OPERATIONS = [one for one in AclOperation if one not in {AclOperation.UNKNOWN, AclOperation.ANY}]


def parse_operation(text: str) -> AclOperation:
    """Parse an operation in any case, with or without `-` and `_`: `describe-configs` or `DescribeConfigs`.

    Raises:
        ConfigError: there is no such operation.

    """
    found = find_name(_OPERATIONS, text)
    if found is None:
        names = ", ".join(one.name for one in _OPERATIONS)
        raise ConfigError(f"{text!r} is not an operation: expected one of {names}{_in_ascii(text)}")
    return found


def parse_resource(text: str, pattern_type: PatternType | None = None) -> ResourcePattern:
    """Parse a resource: `TYPE:NAME`, such as `topic:orders`, `topic:pii-*` for all that begin so, or just `cluster`.

    With a pattern type a name is taken as it is.

    Raises:
        ConfigError: there is no such type, the name is missing, or a star is where none can be.

    """
    kind, colon, name = text.partition(":")
    resource_type = find_name(_TYPES, kind)
    if resource_type is not None:
        if resource_type is ResourceType.CLUSTER and not colon:
            return ResourcePattern(resource_type=resource_type, name=CLUSTER_NAME)
        if colon:
            return asked_pattern(resource_type, name, pattern_type)
    expected = f"TYPE:NAME, such as topic:orders, with TYPE one of {', '.join(map(_type_word, _TYPES))}"
    raise ConfigError(f"{text!r} is not a resource: expected {expected}{_in_ascii(kind)}")


def _in_ascii(text: str) -> str:
    return "" if text.isascii() else ", in ASCII"


def _type_word(resource_type: ResourceType) -> str:
    return resource_type.name.lower().replace("_", "-")


def _why(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    operation = parse_operation(arguments.text("operation"))
    given = arguments.text(_PATTERN.flag)
    pattern_type = parse_name(_PATTERNS, given) if given else None
    patterns = [parse_resource(word.text, pattern_type) for word in arguments.all("resources")]
    context = RequestContext(
        principal=arguments.text("principal"), host=host_address(arguments.text(_HOST.flag) or DEFAULT_HOST)
    )
    image = state.image()
    settings = settings_of(arguments, image)
    policy = Policy(image.acls.with_options(documented=False, cidr=settings.cidr), settings)
    options = ExplainOptions(
        allow_everyone=policy.settings.allow_everyone,
        host_given=bool(arguments.text(_HOST.flag)),
        as_of=None if state.moment is None else moment_text(state.moment),
        place=state.source.change_place,
        origins=state.origins,
        premises=state.premises(given_settings(arguments)),
    )
    for number, pattern in enumerate(patterns):  # of names that begin so: if all are decided alike
        action = Action(operation=operation, resource_pattern=pattern)
        explanation = explained(policy, context, action, options)
        yield from [Line("")] if number else []
        yield from map(Line, explanation_lines(explanation))


def _suggestions(state: ShellState, number: int) -> Iterable[str]:
    if number == 0:
        return sorted(state.image().acls.principals())
    if number == 1:
        return [operation.name for operation in _OPERATIONS]
    return ["cluster" if kind is ResourceType.CLUSTER else f"{_type_word(kind)}:" for kind in _TYPES]


WHY = Command(
    name="why",
    description="Decide a request, and print the ACLs that took part and what would reverse the decision.",
    signature=Signature(
        arguments=(
            Argument(name="principal", count=Count.ONE, help="The principal, such as User:alice."),
            Argument(name="operation", count=Count.ONE, help="The operation, such as READ or describe-configs."),
            Argument(
                name="resources",
                count=Count.SOME,
                help="The resources: TYPE:NAME, such as topic:orders, topic:pii-*, user:User:bob; or cluster.",
            ),
        ),
        options=(_HOST, _PATTERN, *SETTINGS),
    ),
    run=_why,
    suggestions=_suggestions,
)
