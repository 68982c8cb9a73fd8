"""One JSON object with text fields, as in the lines that the commands read."""

import json

from aclog.metalog.errors import ConfigError

_DECODER = json.JSONDecoder()


def parse_object(line: bytes) -> dict[str, object]:
    """The object in this line.

    Raises:
        ConfigError: not UTF-8, not JSON, or not an object.

    """
    try:
        value = _DECODER.decode(line.decode())
    except UnicodeDecodeError as error:
        raise ConfigError(f"byte {error.start} is not UTF-8") from error
    except RecursionError as error:
        raise ConfigError("not a JSON object: nested too deeply") from error
    except json.JSONDecodeError as error:  # its own text has a line number, which is always 1 here
        raise ConfigError(f"not JSON: {error.msg} at character {error.pos + 1}") from error
    except ValueError as error:
        raise ConfigError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ConfigError(f"expected a JSON object, not {type(value).__name__}")
    return value


def text_field(value: dict[str, object], key: str) -> str:
    """A field that must be there and be text.

    Raises:
        ConfigError: the key is missing, its value is not a string, or is not valid Unicode.

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
    """Refuse half a surrogate pair, which no log can hold.

    Raises:
        ConfigError: there is one.

    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{key} holds half a surrogate pair at character {error.start}") from error
