"""Images go to other processes: pickled, and copied."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import aclog

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests/data/kafka-4.3.1-small/__cluster_metadata-0"
RULES = ROOT / "tests/data/kafka-4.3.1-small/expected/acls.jsonl"


def asked(image):
    authorizer = image.authorizer(super_users="User:admin")
    return [
        (answer.allowed, answer.rule, answer.explain())
        for answer in (authorizer.check("User:bob", "WRITE", topic) for topic in ("payments.eu", "orders", "pay"))
    ]


@pytest.mark.parametrize("as_of", [None, 200, "2026-11-21 02:24:30Z"])
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_image_is_the_same(as_of, protocol):
    with aclog.open_log(LOG) as log:
        image = log.image(as_of=as_of)
        before = asked(image)
        data = pickle.dumps(image, protocol)
    found = pickle.loads(data)
    assert asked(found) == before
    assert set(found.acls()) == set(image.acls())
    assert not image.diff(found)
    assert (found.end_offset, found.timestamp, found.as_of) == (image.end_offset, image.timestamp, image.as_of)
    state = found.state
    assert (state.scram, state.tokens, state.features) == (image.state.scram, image.state.tokens, image.state.features)
    assert len(data) < 40_000


def test_an_image_with_changes_since_its_base(tmp_path):
    with aclog.open_log(LOG) as log:
        image = log.image()
    changed = image.state.acls.apply(())
    assert pickle.loads(pickle.dumps(changed)).digest() == changed.digest()


def test_files_and_lines_go_with_it():
    with aclog.open_acls(RULES) as log:
        image = log.image()
    found = pickle.loads(pickle.dumps(image))
    rule = next(found.acls(name="payments."))
    assert found.origins.of(rule.acl) == image.origins.of(rule.acl)
    assert found.origins.of(rule.acl)[0].line == 50


@pytest.mark.process
def test_another_process_reads_it(tmp_path):
    with aclog.open_log(LOG) as log:
        (tmp_path / "image").write_bytes(pickle.dumps(log.image()))
    code = f"import pickle; print(len(pickle.load(open({str(tmp_path / 'image')!r}, 'rb'))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "68\n"


def test_a_damaged_pickle_is_refused():
    with aclog.open_log(LOG) as log:
        image = log.image()
    data = bytearray(pickle.dumps(image))
    data[data.index(b"aclogbas") + 1000] ^= 1
    with pytest.raises(aclog.DecodeError, match="a pickled image is damaged"):
        pickle.loads(bytes(data))


def test_a_copy_is_the_image():
    with aclog.open_log(LOG) as log:
        image = log.image()
    assert copy.copy(image) is copy.deepcopy(image) is image
    assert copy.deepcopy({"a": image})["a"] is image
