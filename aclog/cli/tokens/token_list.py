"""The delegation tokens of a state, as `tokens list` lists them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.principals import KafkaPrincipal
from aclog.cli.flags.output import Output
from aclog.cli.flags.values import typed_text
from aclog.metalog.errors import ConfigError
from aclog.metalog.records import DelegationTokenRecord
from aclog.snapshots.moments import milliseconds
from aclog.sources.choice import ChosenSource
from aclog.terminal.columns import Column, Row
from aclog.terminal.moment import take_moment
from aclog.terminal.rows import print_rows
from aclog.terminal.timestamps import time_text


def _time(value: Any) -> str:
    return time_text(value)


def _names(value: Any) -> str:
    return ", ".join(value)


COLUMNS = (
    Column(key="tokenId", title="TOKEN"),
    Column(key="owner", cut=True),
    Column(key="requester", cut=True, spare=True),
    Column(key="renewers", cut=True, spare=True, text=_names),
    Column(key="issueTimestamp", title="ISSUED", text=_time),
    Column(key="expiryTimestamp", title="EXPIRES", text=_time),
    Column(key="maxTimestamp", title="LATEST", text=_time),
)
"""Whose token it is, when it was issued, when it expires, and until when it can be renewed; times in ms since 1970."""


def print_tokens(chosen: ChosenSource, owners: Sequence[str], expires_before: str | None, output: Output) -> None:
    """Print the tokens that concern these principals, or all, and expire before a time; the earliest first.

    Raises:
        ConfigError: a bad principal, or a text that is no time.
        MetadataError: the source is damaged, or cannot be reached.

    """
    wanted = [_principal(text) for text in owners]
    limit = None if expires_before is None else _limit(expires_before)
    tokens = chosen.image().tokens
    found = tokens.owned_by(wanted) if wanted else tokens.records()
    soon = (record for record in found if limit is None or record.expiration_timestamp < limit)
    rows = map(_row, sorted(soon, key=lambda record: record.expiration_timestamp))
    print_rows(COLUMNS, rows, output.form, chosen=output.columns)
    chosen.warn_of_age()


def _principal(text: str) -> str:
    try:
        return str(KafkaPrincipal.parse(typed_text(text.strip())))
    except InvalidRequestError as error:
        raise ConfigError(f"--owner-principal: {error}: expected TYPE:NAME") from None


def _limit(text: str) -> int:
    moment = take_moment(text)
    if not isinstance(moment, datetime):
        raise ConfigError(f"--expires-before {text!r}: expected a time, such as 2026-11-27 or 2026-11-27T18:00Z")
    return milliseconds(moment)


def _row(record: DelegationTokenRecord) -> Row:
    return {
        "tokenId": record.token_id,
        "owner": record.owner,
        "requester": record.requester,
        "renewers": list(record.renewers),
        "issueTimestamp": record.issue_timestamp,
        "expiryTimestamp": record.expiration_timestamp,
        "maxTimestamp": record.max_timestamp,
    }
