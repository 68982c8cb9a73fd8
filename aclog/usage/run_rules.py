"""The rules that accesses are judged by, as the index of last use takes them."""

from base64 import urlsafe_b64decode
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from aclog.metalog.vectors import Bytes
from aclog.usage.arrow.acl_structs import ACL_FIELDS
from aclog.usage.decisions.acl_intervals import ALWAYS, FOREVER
from aclog.usage.decisions.rules import Rules
from aclog.usage.index.rule_texts import KEY_BYTES, digests
from aclog.usage.index.seen_rules import STILL, UNKNOWN, RuleText, SeenRules


def seen_rules(rules: Rules, *, own_time: bool) -> SeenRules:
    """Return the rules by which a run judges; with `own_time`, each access by those of its time."""
    intervals = rules.intervals
    records = (intervals.records[start:end] for start, end in pairwise([0, *intervals.record_ends.tolist()]))
    permissions = np.asarray(rules.table.column("permissionType").to_numpy())

    def texts(ordinals: Sequence[int]) -> list[RuleText]:
        """Return the texts of some rules."""
        rows: list[RuleText] = rules.table.select(ACL_FIELDS).take(list(ordinals)).to_pylist()
        return rows

    return SeenRules(
        ids=_ids(rules),
        digests=digests(records)[intervals.content_of],
        denies=permissions != "ALLOW",
        texts=texts,
        begins=np.where(intervals.visible_from == ALWAYS, UNKNOWN, intervals.visible_from * 1000),
        ends=np.where(intervals.visible_to == FOREVER, STILL, intervals.visible_to * 1000),
        is_history=own_time,
        known_from=None if intervals.known_from == ALWAYS else intervals.known_from * 1000,
    )


def _ids(rules: Rules) -> Bytes | None:
    column = rules.table.column("id")
    if column.null_count:
        return None
    # 22 characters of base64 each: two more make 18 whole bytes
    data = urlsafe_b64decode("".join(f"{text}AA" for text in column.to_pylist()))
    return np.ascontiguousarray(np.frombuffer(data, np.uint8).reshape(-1, KEY_BYTES + 2)[:, :KEY_BYTES])
