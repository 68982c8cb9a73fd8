"""Signatures of reports: by keys that rsign2 0.6.7 made, judged by py-minisign, which shares no code with ours.

tests/data/minisign: `rsign generate --unencrypted` (plain) and `rsign generate` with the passphrase below (locked).
"""

from base64 import b64decode, b64encode
from pathlib import Path

import minisign
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.metalog.errors import ConfigError
from aclog.security.minisign import read_secret_key
from tests.support.cli.command import aclog
from tests.support.runs.profiles import examples

DATA = Path(__file__).parents[1] / "data"
KEYS, LOG = DATA / "minisign", DATA / "week" / "log"
PASSPHRASE = b"correct horse"


def key(name, passphrase=PASSPHRASE):
    return read_secret_key((KEYS / f"{name}.key").read_bytes(), name, lambda: passphrase)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("plain", "locked"):
        path = tmp_path / f"{name}.key"
        path.write_bytes((KEYS / f"{name}.key").read_bytes())
        path.chmod(0o600)
    (tmp_path / "passphrase").write_bytes(PASSPHRASE + b"\n")
    (tmp_path / "passphrase").chmod(0o600)
    return tmp_path


@pytest.mark.parametrize(("name", "flags"), [("plain", ()), ("locked", ("--passphrase-file", "passphrase"))])
def test_another_program_verifies_a_signed_report_and_refuses_a_changed_one(name, flags, place):
    made = aclog("report", LOG, "-o", "a.md", "--sections", "numbers", "--sign", f"{name}.key", *flags).ok()
    public = minisign.PublicKey.from_file(KEYS / f"{name}.pub")
    data, signature = (place / "a.md").read_bytes(), minisign.Signature.from_file(place / "a.md.minisig")
    public.verify(data, signature)
    assert f"minisign -Vm a.md -P {public.to_base64().decode()}" in made.err
    with pytest.raises(minisign.VerifyError):
        public.verify(data + b"x", signature)
    with pytest.raises(minisign.VerifyError):
        minisign.PublicKey.from_file(KEYS / f"{'locked' if name == 'plain' else 'plain'}.pub").verify(data, signature)
    forged = (place / "a.md.minisig").read_text().replace("offset:40", "offset:41")
    assert "offset:41" in forged
    with pytest.raises(minisign.VerifyError):
        public.verify(data, minisign.Signature.from_bytes(forged.encode()))


@given(st.binary(max_size=300), st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=40))
@settings(max_examples=examples(50))
def test_any_data_and_comment(data, comment):
    signature = minisign.Signature.from_bytes(key("plain").signature(data, comment).encode())
    minisign.PublicKey.from_file(KEYS / "plain.pub").verify(data, signature)


def test_a_key_of_another_program_is_read_as_it_reads_it():
    other = minisign.KeyPair.generate()
    ours = read_secret_key(bytes(other.secret_key), "other", bytes)
    assert ours.public_text == other.public_key.to_base64().decode()
    other.public_key.verify(b"x", minisign.Signature.from_bytes(ours.signature(b"x", "").encode()))


def changed(at, value):
    comment, text = (KEYS / "plain.key").read_bytes().splitlines()
    data = bytearray(b64decode(text))
    data[at : at + len(value)] = value
    return comment + b"\n" + b64encode(data) + b"\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "expected a secret key of minisign"),
        (b"\0" * 5000, "expected a secret key of minisign"),
        (b"untrusted comment: x\n%%%\n", "k:2: expected a secret key"),
        (b"untrusted comment: x\nAAAA\n", "3 bytes instead of 158"),
        ((KEYS / "plain.pub").read_bytes(), "is a public key"),
        (changed(0, b"RS"), "unknown algorithms"),
        (changed(2, b"XX"), "unknown algorithms"),
        (changed(60, b"\0\0"), "a damaged key: its checksum differs"),
        (changed(2, b"Sc"), "wrong passphrase, or a damaged key"),
        (changed(2, b"Sc" + b"B2" + bytes(32) + b"\xff" * 16), "expected at most"),
    ],
)
def test_what_is_no_key_is_refused(content, problem):
    with pytest.raises(ConfigError, match=problem):
        read_secret_key(content, "k", lambda: b"")


def test_nothing_is_written_without_a_signature(place):
    (place / "wrong").write_text("wrong\n")
    for words, problem in (
        (("--sign", "locked.key", "--passphrase-file", "wrong"), "locked.key: wrong passphrase"),
        (("--sign", "locked.key"), "expected --passphrase-file"),
        (("--sign", "absent.key"), "absent.key: no such file"),
        (("--passphrase-file", "wrong"), "only together with --sign"),
    ):
        refused = aclog("report", LOG, "-o", "b.md", "--sections", "numbers", *words)
        assert (refused.code, problem in refused.complaint) == (2, True), refused.err
        assert PASSPHRASE.decode() not in refused.err
        assert not list(place.glob("b.md*"))


def test_no_secret_is_in_a_representation():
    assert key("plain").seed.hex() not in repr(key("plain"))
    assert "seed" not in repr(key("plain"))


def test_a_line_end_in_a_comment_is_refused():
    with pytest.raises(ConfigError, match="printable"):
        key("plain").signature(b"", "a\nb")
