import re
import secrets

import pytest

from aclog.metalog.errors import ConfigError
from aclog.server.storage import parse_scram_argument


def zeros(count: int) -> bytes:
    return bytes(count)


def test_a_password() -> None:
    text = "SCRAM-SHA-256=[name=admin,password=admin-secret,salt=MWluZmQ3cjVlb3BsMTFmc2NnN2k2bjRkYg==]"
    record = parse_scram_argument(text, zeros)
    assert (record.name, record.mechanism, record.iterations) == ("admin", 1, 4096)
    assert record.salt == b"1infd7r5eopl11fscg7i6n4db"
    assert record.stored_key.hex().startswith("1f8360ba62261e45")  # as kafka-storage printed it
    assert record.server_key.hex().startswith("636665d7f9d78c80")


def test_a_salted_password_with_quotes() -> None:
    text = ' SCRAM-SHA-512=[name=bob,iterations=8192,salt="N3E=",saltedpassword="YCE"] '
    record = parse_scram_argument(text, zeros)
    assert (record.name, record.mechanism, record.iterations, record.salt) == ("bob", 2, 8192, b"7q")
    assert record.stored_key.hex().startswith("7176a349f91eb2e1")


def test_salts_are_random_and_names_unchanged() -> None:
    record = parse_scram_argument("SCRAM-SHA-256=[name= a b ,password=]", zeros)
    assert record.name == " a b "
    assert record.salt == b"0"
    salts = [parse_scram_argument("SCRAM-SHA-256=[name=a,password=b]", secrets.token_bytes).salt for _ in range(20)]
    assert len(set(salts)) == 20
    # As Kafka's tools make them, and as salts of users who do not exist are: 130 bits in base 36.
    assert all(re.fullmatch(rb"[0-9a-z]{20,26}", salt) for salt in salts), salts


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("foo", "does not begin with"),
        ("SCRAM-SHA-1=[name=a,password=hunter2]", "does not begin with"),
        ("SCRAM-SHA-256=name=a,password=hunter2", "not enclosed in [ and ]"),
        ("SCRAM-SHA-256=[", "not enclosed in [ and ]"),
        ("SCRAM-SHA-256=[name=a]", "neither password nor saltedpassword"),
        ("SCRAM-SHA-256=[password=hunter2]", "no name"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=YCE=]", "saltedpassword without salt"),
        ("SCRAM-SHA-256=[name=a,password=hunter2,hunter2=c]", "part 3 between [ and ] has an unknown key"),
        ("SCRAM-SHA-256=[name=a,password=x,hunter2]", "part 3 between [ and ] is not <key>=<value>"),
        ("SCRAM-SHA-256=[name=a,password=x,iterations=100]", "expected 4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=x,iterations=16385]", "expected 4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=x,iterations=y]", "expected 4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=x,salt=hunter2***]", "salt is not base64"),
        ("SCRAM-SHA-256=[name=a,salt=YCE=,saltedpassword=hunter2***]", "saltedpassword is not base64"),
    ],
)
def test_errors_do_not_quote_the_argument(text: str, what: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_scram_argument(text, zeros)
    assert what in str(error.value)
    assert "hunter2" not in str(error.value)
