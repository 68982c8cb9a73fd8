"""Many ACLs or changes: an iterator that is also a table."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from attrs import define, field, frozen

from aclog.analysis.rows.table_forms import Cell, Kind, arrow_table, html_table, pandas_frame
from aclog.authorizer.acl import StandardAclWithId
from aclog.library.arguments import told_as_log_errors
from aclog.metalog.uuids import uuid_text
from aclog.shell.rule_text import rule_fields
from aclog.snapshots.rule_history import Change

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


class _Row(Protocol):
    def to_dict(self) -> Mapping[str, object]: ...


_Value = TypeVar("_Value", bound=_Row)


@frozen(kw_only=True)
class RowForm(Generic[_Value]):
    """How values become rows: the columns, and the cells of a value."""

    what: str
    kinds: Mapping[str, Kind]
    cells: Callable[[_Value], Sequence[Cell]]


def _rule_cells(rule: StandardAclWithId) -> Sequence[Cell]:
    return (*rule_fields(rule), None if rule.id is None else uuid_text(rule.id))


def _change_cells(change: Change) -> Sequence[Cell]:
    place = (change.offset, change.end_offset, change.timestamp, change.kind.value)
    return (*place, *_rule_cells(change.rule), change.first_seen)


_RULE_KINDS = dict.fromkeys(
    ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType", "id"), Kind.TEXT
)
RULES = RowForm[StandardAclWithId](what="ACLs", kinds=_RULE_KINDS, cells=_rule_cells)
CHANGES = RowForm[Change](
    what="changes",
    kinds={
        "offset": Kind.NUMBER,
        "endOffset": Kind.NUMBER,
        "timestamp": Kind.TIME,
        "change": Kind.TEXT,
        **_RULE_KINDS,
        "firstSeen": Kind.FLAG,
    },
    cells=_change_cells,
)


@define(eq=False, repr=False)
class Rows(Iterator[_Value]):
    """Values that are read one by one, as they are asked for; the forms of a table read all of them, from the first.

    Each step, and each of the forms, may raise what reading a log raises.
    """

    name: str
    """Of what they are read from."""
    _read: Callable[[], Iterator[_Value]]
    _form: RowForm[_Value]
    _rest: Iterator[_Value] | None = field(default=None, init=False)

    def __next__(self) -> _Value:
        if self._rest is None:
            self._rest = self._all()
        return next(self._rest)

    def __repr__(self) -> str:
        return f"<{self._form.what} of {self.name}>"

    def to_dicts(self) -> list[dict[str, object]]:
        """Return them as the objects of their JSON lines."""
        return [dict(value.to_dict()) for value in self._all()]

    def to_arrow(self) -> "pa.Table":
        """Return them as an Arrow table, with times in UTC. Raises ConfigError: pyarrow is not installed."""
        return arrow_table(self._form.kinds, map(self._form.cells, self._all()))

    def to_pandas(self) -> "pd.DataFrame":
        """Return them as a data frame, with times in UTC. Raises ConfigError: pandas is not installed."""
        return pandas_frame(self._form.kinds, map(self._form.cells, self._all()))

    def _repr_html_(self) -> str:
        return self.html(caption=f"{self._form.what} of {self.name}")

    def html(self, *, caption: str, total: int | None = None) -> str:
        """Return the first rows as an HTML table."""
        return html_table(tuple(self._form.kinds), map(self._form.cells, self._all()), caption=caption, total=total)

    def _all(self) -> Iterator[_Value]:
        with told_as_log_errors(self.name):
            yield from self._read()
