"""Transaction spans from markers alone agree with the applier, record by record."""

from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.errors import ReplayError
from aclog.metalog.records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord, NoOpRecord
from aclog.pipeline.history.transaction_spans import Marker, Span, TransactionSpans, by_range, range_of, spans_of
from aclog.snapshots.applier import Transactions

BEGIN, END, ABORT = "BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD"
RECORDS = {
    BEGIN: BeginTransactionRecord(),
    END: EndTransactionRecord(),
    ABORT: AbortTransactionRecord(),
    "": NoOpRecord(),
}


def markers(*batches):
    """Markers of batches, each a list of record types, `` for any other record."""
    offset, found = 0, []
    for batch in batches:
        found += [Marker(at, offset, kind) for at, kind in enumerate(batch, offset) if kind]
        offset += len(batch)
    return found


def visible_by_the_applier(batches):
    """{Offset of a record: base offset of the batch at whose end it became visible}, and the error that ended it."""
    transactions, shown, offset = Transactions(), {}, 0
    for batch in batches:
        base = offset
        for kind in batch:
            try:
                transactions.add(offset, RECORDS[kind])
            except ReplayError as e:
                return shown, str(e)
            offset += 1
        if not transactions.is_open:
            shown |= {at: base for at, _ in transactions.take()}
    return shown, None


def visible_by_spans(batches, spans):
    shown, offset = {}, 0
    for batch in batches:
        base = offset
        late = [span.last for span in spans.deferred if span.first <= base <= span.last]
        for kind in batch:
            dropped = any(span.first <= offset <= span.last for span in spans.aborted)
            hidden = spans.hidden_from is not None and base >= spans.hidden_from
            if not kind and not dropped and not hidden:
                shown[offset] = late[0] if late else base
            offset += 1
    return shown


@given(st.lists(st.lists(st.sampled_from(["", "", BEGIN, END, ABORT]), min_size=1, max_size=4), max_size=12))
def test_spans_agree_with_the_applier(batches):
    spans = spans_of(markers(*batches))
    shown, error = visible_by_the_applier(batches)
    assert visible_by_spans(batches, spans) == shown
    assert (None if spans.failure is None else str(spans.failure)) == error


@given(st.lists(st.integers(1, 5), max_size=30), st.randoms(use_true_random=False))
def test_spans_of_well_formed_transactions_agree_with_the_applier(sizes, random):
    is_open, batches = False, []
    for size in sizes:
        batch = []
        for _ in range(size):
            kind = random.choice(("", "", (END, ABORT)[random.randrange(2)] if is_open else BEGIN))
            is_open = is_open if not kind else not is_open
            batch.append(kind)
        batches.append(batch)
    spans = spans_of(markers(*batches))
    assert spans.failure is None
    assert visible_by_spans(batches, spans) == visible_by_the_applier(batches)[0]


def test_a_log_without_transactions():
    assert spans_of([]) == TransactionSpans()


def test_a_transaction_within_one_batch_holds_nothing_back():
    assert spans_of(markers(["", BEGIN, "", END, ""])) == TransactionSpans()
    assert spans_of(markers(["", BEGIN, "", ABORT, ""])) == TransactionSpans(aborted=(Span(1, 3),))


def test_transactions_that_share_a_batch_become_visible_together():
    found = spans_of(markers([BEGIN, ""], ["", END, "", BEGIN], [ABORT, ""]))
    assert found == TransactionSpans(deferred=(Span(0, 6),), aborted=(Span(5, 6),))


def test_an_open_transaction_hides_its_first_batch_and_all_after_it():
    assert spans_of(markers([""], ["", BEGIN], [""])) == TransactionSpans(hidden_from=1)


def test_a_span_is_listed_in_every_range_it_touches():
    last = (2 << 16) + 5
    assert [number for number, _ in by_range([Span(65_535, last)])] == [0, 1, 2]
    assert range_of(65_535) == 0
