"""The explanation of one decision, for `explain`."""

from collections.abc import Iterator

from attrs import evolve

from aclog.authorizer.explain import explain
from aclog.authorizer.explain_options import ExplainOptions
from aclog.authorizer.explanation import Explanation
from aclog.authorizer.generation import Generation
from aclog.cli.decisions import asked_of, authorizer_of
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.request import Request
from aclog.cli.image_report import RangeWatch
from aclog.cli.rule_columns import ORIGIN_COLUMNS, RULE_COLUMNS
from aclog.snapshots.deciding_kafka import DecidingKafka
from aclog.snapshots.image import Image
from aclog.snapshots.state_source import StateSource
from aclog.terminal.columns import Column, Row

_OLDER = DecidingKafka(generations=(Generation.V4_3,), stated=Generation.V4_3)
_LOG_COLUMNS = (Column(key="offset"), Column(key="timestamp", spare=True))


def examined_columns(*, in_log: bool = False) -> tuple[Column, ...]:
    """Return the columns of the ACLs of an explanation; `in_log`: where in a log each was added, too."""
    placed = (*ORIGIN_COLUMNS, *_LOG_COLUMNS) if in_log else ORIGIN_COLUMNS
    return (Column(key="role"), *RULE_COLUMNS, *placed, Column(key="notes", spare=True, text="; ".join))


def examined_rows(explanation: Explanation) -> Iterator[Row]:
    """Yield the ACLs that took part, the most important first."""
    for each in explanation.to_dict()["rules"]:
        yield {"role": each["role"], **each["rule"], "notes": each["notes"]}


def explain_one(image: Image, flags: AuthorizerFlags, request: Request, options: ExplainOptions) -> Explanation:
    """Return the explanation of a decision; warn of ACLs with a CIDR range as host.

    Raises:
        ConfigError, InvalidRequestError: as aclog.cli.decisions.decide.

    """
    context, action = asked_of(request)
    pattern = action.resource_pattern
    decision = authorizer_of(image, flags).decide(context, action)
    has_ranges = flags.generation is Generation.V4_4
    acls = image.acls.with_options(documented=flags.documented, cidr=has_ranges)
    if not has_ranges:
        watch = RangeWatch(options.origins)
        watch.watch_all(acls.candidates(pattern.resource_type, pattern.name), _OLDER)
        watch.report()
    return explain(acls, decision, context, action, options=options)


def watch_ranges(explanation: Explanation, flags: AuthorizerFlags) -> None:
    """Warn of ACLs with a CIDR range as host among those of an explanation."""
    if not flags.cidr:
        watch = RangeWatch(explanation.options.origins)
        watch.watch_all((each.rule for each in explanation.rules), _OLDER)
        watch.report()


def with_log_origins(explanation: Explanation, source: StateSource, image: Image) -> Explanation:
    """Return an explanation of `image` that tells where its ACLs were added; the same if its source has no log.

    Raises:
        MetadataError: the log is damaged, or no checkpoint reaches its start.

    """
    if source.log is None:
        return explanation
    from aclog.sources.log_past import past_of  # reads the whole log, which only this asks for

    ids = {each.rule.id: each.rule.acl for each in explanation.rules if each.rule.id is not None}
    past = past_of(source, image.end_offset, ids)
    return evolve(explanation, options=evolve(explanation.options, origins=past))
