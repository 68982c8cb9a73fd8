"""The ACLs that decide accesses, as text and with the intervals in which they were in force."""

from functools import cached_property
from typing import Self

import pyarrow as pa
from attrs import frozen

from aclog.authorizer.acls_image import AclsImage
from aclog.usage.decisions.acl_intervals import RULE_COLUMNS, AclIntervals, rule_table
from aclog.usage.decisions.decision_texts import DecisionTexts


@frozen(eq=False, kw_only=True)
class Rules:
    """The ACLs to decide by, as text and in the form that decides; row n of `table` is ordinal n."""

    table: pa.Table
    intervals: AclIntervals

    @cached_property
    def texts(self) -> DecisionTexts:
        """The texts of decision codes."""
        return DecisionTexts.of_rules(self.table)

    @classmethod
    def of_image(cls, image: AclsImage) -> Self:
        """Take the ACLs of one state, as in force at all times."""
        return cls.of_table(rule_table(image))

    @classmethod
    def of_table(cls, table: pa.Table, *, known_from: int | None = None) -> Self:
        """Take the ACLs of a history, each with its interval (aclog.pipeline.history.intervals).

        `known_from` is the time since which they are known, in ms since 1970; None for at all times.
        """
        return cls(table=table.select(RULE_COLUMNS), intervals=AclIntervals.of_table(table, known_from=known_from))
