"""Decisions on the lines of a file: `aclog authorize --requests`."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from aclog.authorizer.acl import ResourcePattern, enum_field
from aclog.authorizer.acls_image import PROBE, AclsImage
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.authorizer.settings import Generation, controllers_decide
from aclog.authorizer.standard import ALL_KNOWN, Premises, StandardAuthorizer
from aclog.cli.explain import ALLOWED, BAD_INPUT, authorizer_of, canonical_host, decide
from aclog.cli.flags.common import AuthorizerFlags, Output
from aclog.cli.flags.question import Request
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.json_object import json_string, parse_object, text_field
from aclog.metalog.values import define
from aclog.ops.policies import each_generation
from aclog.snapshots.image import Image
from aclog.snapshots.image_file import check_mapping
from aclog.sources.acl_lines import blocks, display_name, without_mark
from aclog.terminal.columns import Column, OutputFormat, Row, json_text
from aclog.terminal.notices import BYTES, progress
from aclog.terminal.output import complain

ANSWER_COLUMNS = (Column(key="decision"), Column(key="rule", cut=True), Column(key="error", flows=True))
"""Of a line of `--requests`."""
_BY_RESOURCE_TYPE = "byResourceType"
_CACHE_LIMIT = 1 << 18
"""Cached lines, at about 400 bytes each; the cache is cleared when it is full."""
_ALLOWED = AuthorizationResult.ALLOWED


def decide_requests(
    image: Image,
    flags: AuthorizerFlags,
    path: str,
    output: Output,
    *,
    answered: Callable[[], None],
    premises: Premises = ALL_KNOWN,
) -> int:
    """Print one line for each line of a file; return the exit code. `answered` is called after each block of lines.

    Without another format these are JSON lines.

    Raises:
        ConfigError: a super user without a colon, a damaged gzip file, or a line of more than 4 MiB.
        OSError: the file cannot be read.
        LogError: the image file that the state is mapped from was overwritten meanwhile.

    """
    each = each_generation(image, flags)
    each.warn()
    authorizers = {generation: authorizer_of(image, own) for generation, own in each.stated.items()}
    acls = image.acls.with_options(documented=flags.documented, cidr=image.acls.cidr)
    decider = LineDecider(authorizers, acls, premises, brokers=each.of_brokers)
    counted = _Counted(path)
    if output.is_rows and (output.columns or output.form is not OutputFormat.JSONL):
        output.print_rows(ANSWER_COLUMNS, _answers(decider, counted, answered))
    else:
        for lines in counted.blocks():
            sys.stdout.buffer.write(b"\n".join(decider.decide_lines(lines)) + b"\n")
            sys.stdout.buffer.flush()  # a program at the other end of the pipe may wait for these
            answered()
    if decider.failed:
        failed = f"{decider.failed:,} of {counted.lines:,} requests could not be decided"
        complain(f"{display_name(path)}: {failed}: each has a line with ERROR in the output")
    return BAD_INPUT if decider.failed else ALLOWED


@define
class _Counted:
    """The lines of a file of requests, in blocks, and how many there were."""

    path: str
    lines: int = 0

    def blocks(self) -> Iterator[Sequence[bytes]]:
        """Yield blocks of lines. Raises as decide_requests."""
        with progress("deciding requests", BYTES, streams=True) as advance:
            for block in without_mark(blocks(self.path, advance)):
                self.lines += len(block)
                if block:
                    yield block


def _answers(decider: "LineDecider", counted: _Counted, answered: Callable[[], None]) -> Iterator[Row]:
    for lines in counted.blocks():
        yield from map(json.loads, decider.decide_lines(lines))
        answered()


class LineDecider:
    """Decides requests in lines of JSON on one state; a repeated line costs a dict lookup.

    `failed` is the number of lines that were malformed.
    """

    def __init__(
        self,
        authorizers: Mapping[Generation, StandardAuthorizer],
        acls: AclsImage,
        premises: Premises = ALL_KNOWN,
        *,
        brokers: Sequence[Generation] | None = None,
    ) -> None:
        """Take an authorizer for each generation that may decide, and the ACLs that they decide on.

        They do not change, as their decisions are cached. `premises`: what is unknown of their settings. `brokers`: the
        generations that may decide what no controller decides; None: all.
        """
        self.failed = 0
        self._acls = acls
        self._premises = premises
        self._authorizers = authorizers
        self._of_brokers = {each: own for each, own in authorizers.items() if brokers is None or each in brokers}
        self._cache: dict[bytes, bytes] = {}
        self._malformed: set[bytes] = set()
        """The outputs in the cache that are errors."""

    def decide_lines(self, lines: Sequence[bytes]) -> list[bytes]:
        """Return the output for each line, without line ends.

        Raises:
            LogError: the image file that the ACLs are mapped from was overwritten.

        """
        cache = self._cache
        outputs = [cache.get(line) or self._add(line) for line in lines]
        check_mapping(self._acls)  # reading all lines may take days
        if self._malformed:
            self.failed += sum(output in self._malformed for output in outputs)
        return outputs

    def _add(self, line: bytes) -> bytes:
        if len(self._cache) >= _CACHE_LIMIT:
            self._cache.clear()
            self._malformed.clear()
        text, is_good = self._output(line)
        output = self._cache[line] = text.encode(errors="backslashreplace")
        if not is_good:
            self._malformed.add(output)
        return output

    def _output(self, line: bytes) -> tuple[str, bool]:
        """Return the output for a line, and whether that is a decision."""
        try:
            request = parse_request(line)
            by_controllers = controllers_decide(request.resource_type, request.operation)
            authorizers = self._authorizers if by_controllers else self._of_brokers
            answers = {each: _decide(own, request) for each, own in authorizers.items()}
        except MetadataError as error:
            return f'{{"decision":"ERROR","error":{json_string(str(error))}}}', False
        denied = (each for each in answers.values() if each[0] is not _ALLOWED)
        result, rule = next(denied, next(iter(answers.values())))
        decision = "ALLOWED" if result is _ALLOWED else "DENIED"
        more = self._unknown(request, result)
        if len({each for each, _ in answers.values()}) > 1:
            allowing = [each.value for each, (own, _) in answers.items() if own is _ALLOWED]
            more = f',"allowedOnlyOn":{json.dumps(allowing)}{more}'
        return f'{{"decision":"{decision}","rule":{json_string(rule)}{more}}}', True

    def _unknown(self, request: Request, result: AuthorizationResult) -> str:
        """Return the key with the names of what could turn a decision; empty if nothing could."""
        if not self._premises:
            return ""
        name = PROBE if request.name is None else request.name
        bearing = self._premises.bearing_on(
            allowed=result is _ALLOWED, has_candidate=self._acls.has_candidate(request.resource_type, name)
        )
        return f',"premises":{json_text(bearing.names)}' if bearing else ""


def _decide(authorizer: StandardAuthorizer, request: Request) -> tuple[AuthorizationResult, str]:
    if request.name is not None:
        decision = decide(authorizer, request)
        return decision.result, decision.text
    context = RequestContext(principal=request.principal, host=canonical_host(request.host))
    result = authorizer.authorize_by_resource_type(context, request.operation, request.resource_type)
    # authorizeByResourceType returns no rule. What is shown is the decision on the name that Kafka tries first.
    probe = ResourcePattern(resource_type=request.resource_type, name=PROBE)
    action = Action(operation=request.operation, resource_pattern=probe)
    return result, f"{PROBE}:{authorizer.decide(context, action).text}"


def parse_request(line: bytes) -> Request:
    """Return the request in one line of JSON.

    Raises:
        ConfigError: it is not JSON, a key is missing, or an enum name is unknown.

    """
    value = parse_object(line)
    kind = value.get("kind")
    if kind not in {None, _BY_RESOURCE_TYPE}:
        raise ConfigError(f"kind must be {_BY_RESOURCE_TYPE} or absent, not {json.dumps(kind)[:40]}")
    return Request(
        principal=text_field(value, "principal"),
        operation=enum_field(value, "operation", AclOperation),
        host=text_field(value, "host"),
        resource_type=enum_field(value, "resourceType", ResourceType),
        name=None if kind else text_field(value, "resourceName"),
    )
