"""The ACLs that decide accesses, as text and with the intervals in which they were in force."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Self

import pyarrow as pa
from attrs import evolve, frozen

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.cidr import is_cidr
from aclog.authorizer.generation import Generation
from aclog.authorizer.settings import Settings
from aclog.usage.decisions.acl_intervals import RULE_COLUMNS, AclIntervals, rule_table
from aclog.usage.decisions.decision_texts import DecisionTexts
from aclog.usage.decisions.kafka_times import KafkaTimes, Ranges


@frozen(eq=False, kw_only=True)
class Rules:
    """The ACLs to decide by, as text and in the form that decides; row n of `table` is ordinal n."""

    table: pa.Table
    intervals: AclIntervals

    @cached_property
    def texts(self) -> DecisionTexts:
        """The texts of decision codes."""
        return DecisionTexts.of_rules(self.table)

    @property
    def ranges(self) -> list[str]:
        """The hosts that are ranges of addresses, each once."""
        return [host for host in self.table.column("host").unique().to_pylist() if host is not None and is_cidr(host)]

    def with_kafka(self, kafka: KafkaTimes | None) -> Self:
        """Return the same ACLs, and which Kafka decided when."""
        return evolve(self, intervals=evolve(self.intervals, kafka=kafka))

    def by_kafka(
        self, settings: Settings, generations: Callable[[], Iterable[tuple[int, Sequence[Generation]]]]
    ) -> tuple[Self, Settings]:
        """Return the ACLs and the settings by which accesses are decided, if the settings name no Kafka.

        `generations` returns which of Kafka may have decided from which times on (KafkaTimes.of); it is only called if
        an ACL has a range.
        """
        if settings.is_kafka_stated or not self.ranges:
            return self, settings
        kafka = KafkaTimes.of(generations())
        if kafka.only in (Ranges.NO, Ranges.YES):
            return self, evolve(settings, cidr=kafka.only is Ranges.YES, is_kafka_stated=True)
        return self.with_kafka(kafka), evolve(settings, cidr=False, is_kafka_stated=True)

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
