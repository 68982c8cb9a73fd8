from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.config.security import parse_jaas
from aclog.metalog.errors import ConfigError

SECRET = "hunter2-secret"


def test_module_and_options() -> None:
    entry = parse_jaas('org.x.Module required username="admin" password="a\\"b" user_admin=\'c d\' tokenauth=true;')
    assert entry.module == "org.x.Module"
    assert entry.options == {"username": "admin", "password": 'a"b', "user_admin": "c d", "tokenauth": "true"}


def test_the_repr_shows_no_option() -> None:
    assert SECRET not in repr(parse_jaas(f'm required password="{SECRET}";'))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "does not begin with"),
        (f"{SECRET};", "does not begin with"),
        (f'm never password="{SECRET}";', "does not begin with"),
        (f'm required password="{SECRET}"', "does not end with ';'"),
        (f'm required password="{SECRET}"; m required;', "more than one login module"),
        (f'm required password "{SECRET}";', "an option that is not"),
        (f'm required password="{SECRET}" x;', "an option that is not"),
        (f"m required password=1{SECRET};", "character 21"),
        (f'm required password="{SECRET};', "character 21"),
    ],
)
def test_errors_say_what_was_expected_and_quote_nothing(text: str, what: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_jaas(text)
    assert what in str(error.value)
    assert SECRET not in str(error.value)


@given(st.text(alphabet="am \"'\\=;/*\n-_$.1", max_size=40))
def test_any_text_gives_an_entry_or_a_config_error(text: str) -> None:
    with suppress(ConfigError):
        assert parse_jaas(text).module


@given(st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_-]{0,8}", fullmatch=True), st.text(max_size=12), max_size=4))
def test_quoted_text_survives(options: dict[str, str]) -> None:
    def quoted(value: str) -> str:
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
        return f'"{escaped}"'

    text = " ".join(f"{name}={quoted(value)}" for name, value in options.items())
    assert parse_jaas(f"m required {text};").options == options
