"""Damage is an error with path and position, or set aside; no record is lost silently."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.metalog.batches import build_batch, iter_batches
from aclog.metalog.errors import DecodeError
from aclog.metalog.filelog.files import checkpoint_name
from aclog.pipeline.source.rows import RowSelection, columns_of
from tests.support.builders.log_files import small_log, value
from tests.support.runs.profiles import examples
from tests.support.spark import source

SMALL = next(each for each in source.LOGS if "small" in str(each))


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    """A log of several segments."""
    return small_log(tmp_path_factory.mktemp("damage") / "log", batches=30, segment_bytes=1500)


def flipped(path: Path, position: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


def copied(log: Path, to: Path) -> Path:
    shutil.copytree(log, to)
    return to


def check_set_aside(log: Path, whole: list[dict], **options: object) -> list[dict]:
    """The rows of a damaged log, together with the ranges of its damage rows, cover every record."""
    found = source.read_rows(log, damaged="setAside", **options)
    sound = [row for row in found if row["record_type"] != "DAMAGED"]
    damage = [row for row in found if row["record_type"] == "DAMAGED"]
    kept = {row["offset"] for row in sound}
    assert [row for row in whole if row["offset"] in kept] == sound
    missing = {row["offset"] for row in whole} - kept
    for row in damage:
        first, last = row["damage"].split("offsets ")[1].split(":")[0].split(" to ")
        assert int(first) == row["offset"]
        assert all(row[name] is None for name in row if name not in {"offset", "record_type", "damage"})
        missing -= set(range(int(first), int(last)))
    assert not missing
    return damage


@settings(max_examples=examples(40))
@given(st.data())
def test_one_flipped_bit_fails_with_its_position_or_is_set_aside_alone(tmp_path_factory, log, data):
    broken = copied(log, tmp_path_factory.mktemp("flip") / "log")
    path = data.draw(st.sampled_from(source.segments(broken)))
    position = data.draw(st.integers(0, path.stat().st_size - 1))
    size = data.draw(st.sampled_from([200, 16 << 20]))
    batch = [(at, header) for at, header in iter_batches(path.read_bytes()) if at <= position][-1]
    flipped(path, position, data.draw(st.integers(0, 7)))
    with pytest.raises(DecodeError) as caught:
        source.read_rows(broken, partitionBytes=size)
    assert str(path) in str(caught.value)
    assert batch[0] <= caught.value.position <= batch[0] + batch[1].size
    (damage,) = check_set_aside(broken, source.read_rows(log), partitionBytes=size)
    assert damage["offset"] == batch[1].base_offset
    assert f"{path}: bytes {batch[0]} to " in damage["damage"]


@pytest.mark.parametrize("bit", [0, 3])
def test_no_range_begins_at_a_batch_whose_offset_is_wrong(tmp_path, log, bit):
    """No CRC covers the base offset: only the batch before can tell, and a range begins without it."""
    whole = source.read_rows(log)
    for number, segment in enumerate(source.segments(log)):
        for position, header in iter_batches(segment.read_bytes()):
            broken = copied(log, tmp_path / f"{number}-{position}")
            flipped(broken / segment.name, position + 7, bit)
            (damage,) = check_set_aside(broken, whole, partitionBytes=200)
            assert damage["offset"] == header.base_offset


@settings(max_examples=examples(40))
@given(st.data())
def test_bytes_overwritten_anywhere_lose_nothing_silently(tmp_path_factory, log, data):
    broken = copied(log, tmp_path_factory.mktemp("over") / "log")
    path = data.draw(st.sampled_from(source.segments(broken)))
    content = path.read_bytes()
    start = data.draw(st.integers(0, len(content) - 1))
    end = data.draw(st.integers(start + 1, len(content)))
    fill = data.draw(st.sampled_from([bytes(end - start), b"\x02" * (end - start), content[: end - start], b""]))
    if content[:start] + fill + content[end:] == content:
        return
    path.write_bytes(content[:start] + fill + content[end:])
    with pytest.raises(DecodeError):
        source.read_rows(broken)
    for size in (200, 16 << 20):
        assert check_set_aside(broken, source.read_rows(log), partitionBytes=size)


def test_a_record_that_does_not_decode_sets_its_batch_aside(tmp_path):
    values = [[value("a")], [value("b"), b"\x01\x14\x00\x07"], [value("c")], [value("d")]]
    path = tmp_path / checkpoint_name(4, 1)
    whole = [path.with_name(checkpoint_name(5, 1)), path]
    for target, wrong in zip(whole, (b"\x01\x14\x00\x00", b"\x01\x14\x00\x07"), strict=True):
        data, offset = b"", 0
        for each in values:
            records = [wrong if one[1] == 0x14 else one for one in each]
            data += build_batch(records, base_offset=offset, leader_epoch=1, timestamp=5)
            offset += len(each)
        target.write_bytes(data)
    found = source.read_rows(path, damaged="setAside")
    assert [(row["offset"], row["record_type"]) for row in found] == [
        (0, "TOPIC_RECORD"),
        (1, "DAMAGED"),
        (3, "TOPIC_RECORD"),
        (4, "TOPIC_RECORD"),
        (5, "DAMAGED"),  # the checkpoint has no footer
    ]
    only = source.read_rows(
        path, RowSelection().with_types(["TOPIC_RECORD"]), columns_of(["offset"]), damaged="setAside"
    )
    assert only == [{"offset": offset} for offset in (0, 3, 4)]
    with pytest.raises(DecodeError, match=f"{path.name}: offset 2, byte"):
        source.read_rows(path)


@pytest.mark.parametrize("cut", [1, 100, 117])
def test_a_truncated_checkpoint_is_damaged(tmp_path, cut):
    original = max(SMALL.glob("*.checkpoint"))
    footer = [at for at, _ in iter_batches(original.read_bytes())][-1]
    path = tmp_path / original.name
    path.write_bytes(original.read_bytes()[: -cut if cut < 117 else footer])
    with pytest.raises(DecodeError, match=path.name):
        source.read_rows(path)
    assert source.read_rows(path, damaged="setAside")[-1]["record_type"] == "DAMAGED"


def test_a_kafkas_log_with_a_damaged_end_is_read_up_to_its_last_bytes(tmp_path):
    broken = copied(SMALL, tmp_path / "log")
    path = source.segments(broken)[-1]
    places = [at for at, _ in iter_batches(path.read_bytes())]
    flipped(path, places[3] + 70)
    with pytest.raises(DecodeError, match=path.name):
        source.read_rows(broken)
    (damage,) = check_set_aside(broken, source.read_rows(SMALL))
    assert f"bytes {places[3]} to {places[4]}" in damage["damage"]


def test_filters_apply_to_damage_rows(tmp_path, log):
    broken = copied(log, tmp_path / "log")
    flipped(source.segments(broken)[0], 200)
    every = source.read_rows(broken, damaged="setAside")
    (damage,) = [row for row in every if row["damage"]]
    for selection, kept in (
        (RowSelection().with_types(["DAMAGED"]), [damage]),
        (RowSelection().with_times(), [row for row in every if not row["damage"]]),
        (
            RowSelection().with_offsets(last=damage["offset"]),
            [row for row in every if row["offset"] <= damage["offset"]],
        ),
    ):
        assert source.read_rows(broken, selection, damaged="setAside") == kept


def test_the_number_of_damage_rows_is_bounded(tmp_path):
    one = build_batch([value("x")], base_offset=1, leader_epoch=1, timestamp=0)
    path = tmp_path / checkpoint_name(4, 1)
    path.write_bytes(one[:-1] * 3000)
    rows = source.read_rows(path, damaged="setAside")
    assert 0 < len(rows) <= 1001
    assert f"to {path.stat().st_size}, offsets" in rows[-1]["damage"]
