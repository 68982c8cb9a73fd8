"""Small Java properties files: those that record the owner of a directory, and how far its log was committed.

javaproperties imports XML, HTTP and TLS, which takes longer than replaying a thousand rules. So lines that are a key,
`=` and a value are read here, and files that have anything else, such as an escape, by the library.
"""

import re
from collections.abc import Mapping
from io import BytesIO

_PLAIN = re.compile(rb"(?:[ \t]*[#!][^\\\r\n]*\n|[ \t]*\n|[\w.-]+=[!-\[\]-~]*\n)*", re.ASCII)
"""Comments, blank lines, and keys with values of printable ASCII without a backslash."""


def parse_properties(data: bytes) -> dict[str, str]:
    """Return the values of a file by key. Raises ValueError: it has an invalid escape."""
    whole = data if data.endswith(b"\n") else data + b"\n"
    if _PLAIN.fullmatch(whole):
        lines = (line for line in whole.decode("latin-1").split("\n") if "=" in line and line.lstrip()[0] not in "#!")
        return {key: value for key, _, value in (line.partition("=") for line in lines)}
    import javaproperties  # noqa: PLC0415 - see above

    properties: dict[str, str] = javaproperties.load(BytesIO(data))
    return properties


def format_properties(values: Mapping[str, str], *, comments: str) -> bytes:
    """Return a file with these comments and values, in ASCII, without a time."""
    import javaproperties  # noqa: PLC0415 - see above

    return javaproperties.dumps(values, comments=comments, timestamp=False, ensure_ascii=True).encode("ascii")
