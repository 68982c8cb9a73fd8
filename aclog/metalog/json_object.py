"""JSON objects with text fields, a line of a file each; and texts as JSON that a terminal shows as it is."""

import json

from aclog.metalog.errors import ConfigError, printable_json

_DECODER = json.JSONDecoder()


def parse_object(line: bytes) -> dict[str, object]:
    """Return the object in this line.

    Raises:
        ConfigError: not UTF-8, not JSON, or not an object.

    """
    try:
        value = _decoded(line.decode())
    except UnicodeDecodeError as error:
        raise ConfigError(f"byte {error.start} is not UTF-8") from error
    except RecursionError as error:
        raise ConfigError("not a JSON object: nested too deeply") from error
    except json.JSONDecodeError as error:  # its own message has a line number, which is always 1 here
        raise ConfigError(f"not JSON: {error.msg} at character {error.pos + 1}") from error
    except ValueError as error:
        raise ConfigError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ConfigError(f"expected a JSON object, not {type(value).__name__}")
    return value


def _decoded(text: str) -> object:
    if text.startswith("{"):
        value, end = _DECODER.raw_decode(text)
        if end == len(text):  # nearly always: `decode` would look for white space on both sides
            return value
    return _DECODER.decode(text)


def text_field(value: dict[str, object], key: str) -> str:
    """Return a required text field.

    Raises:
        ConfigError: the key is missing, or its value is not a string of valid Unicode.

    """
    try:
        text = value[key]
    except KeyError:
        raise ConfigError(f"key {key} is missing") from None
    if not isinstance(text, str):
        raise ConfigError(f"{key} must be a string, not {json.dumps(text)[:40]}")
    if not text.isascii():
        check_unicode(key, text)
    return text


def check_unicode(key: str, text: str) -> None:
    """Refuse a lone surrogate: records hold UTF-8, which cannot encode it.

    Raises:
        ConfigError: the text has one.

    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{key} has a lone surrogate at character {error.start}") from error


_quoted = json.encoder.encode_basestring
"""JSON string without ASCII escapes; json.dumps would construct an encoder for each call."""


def json_string(text: str) -> str:
    r"""Return a string as JSON, with unprintable characters as `\uXXXX`, and others as they are."""
    return printable_json(_quoted(text))
