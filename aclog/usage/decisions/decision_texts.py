"""Decision codes as text, in Arrow columns: the decision, the ACL as in Kafka's audit log, and its id."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen
from numpy.typing import NDArray

from aclog.usage.arrow.acl_structs import ACL_FIELDS
from aclog.usage.decisions.decision_codes import ALLOWED, BASES, ERRORS, DecisionCode

TEXT_COLUMNS = ("decision", "rule", "rule_id")

_FIRST = int(min(DecisionCode))
_TEXT: Any = pa.large_string()
"""64-bit offsets: the texts of ten million ACLs exceed the 2 GiB of a string column."""


@frozen(eq=False)
class DecisionTexts:
    """The columns TEXT_COLUMNS; the row of code c is c - min(DecisionCode)."""

    table: pa.Table

    @classmethod
    def of_rules(cls, rules: pa.Table) -> "DecisionTexts":
        """Make the texts from the columns RULE_COLUMNS, in the order of the ordinals."""
        named = pa.table([_decisions(rules), _texts(rules), rules.column("id").cast(_TEXT)], names=list(TEXT_COLUMNS))
        return cls(pa.concat_tables([_without_rule(), named.cast(_without_rule().schema)]).combine_chunks())

    def of_codes(self, codes: "pa.Array[Any]") -> list[Any]:
        """Return the columns with one row per code, for batches whose texts stay below 2 GiB per column."""
        rows = pc.subtract(codes, pa.scalar(_FIRST, pa.int32()))
        return [column.chunk(0).take(rows).cast(pa.string()) for column in self.table.columns]

    def allowing(self) -> "NDArray[np.bool_]":
        """Return whether each code allows, from min(DecisionCode) on."""
        return np.asarray(pc.equal(self.table.column("decision"), pa.scalar("ALLOWED", _TEXT)))

    def numbered(self) -> pa.Table:
        """Return the table with each row's code as the first column, decision_code."""
        codes = pa.array(range(_FIRST, _FIRST + len(self.table)), pa.int32())
        return self.table.add_column(0, "decision_code", codes)


def _without_rule() -> pa.Table:
    rows = []
    for code in map(DecisionCode, range(_FIRST, 0)):
        decision = "ALLOWED" if code in ALLOWED else "DENIED"
        rows.append((decision, BASES[code]) if code in BASES else ("ERROR", ERRORS[code]))
    decisions, texts = zip(*rows, strict=True)
    columns: Any = [pa.array(decisions, _TEXT), pa.array(texts, _TEXT), pa.nulls(len(rows), _TEXT)]
    return pa.table(columns, names=list(TEXT_COLUMNS))


def _decisions(rules: pa.Table) -> Any:
    allows = pc.equal(rules.column("permissionType"), pa.scalar("ALLOW"))
    return pc.if_else(allows, pa.scalar("ALLOWED", _TEXT), pa.scalar("DENIED", _TEXT))


def _texts(rules: pa.Table) -> Any:
    """The text of each ACL in the audit log (StandardAcl.toString)."""
    parts: list[Any] = []
    for name in ACL_FIELDS:
        head = f"{', ' if parts else 'MatchingAcl(acl=StandardAcl['}{name}="
        parts += [pa.scalar(head, _TEXT), rules.column(name).cast(_TEXT)]
    return pc.binary_join_element_wise(*parts, pa.scalar("])", _TEXT), pa.scalar("", _TEXT))
