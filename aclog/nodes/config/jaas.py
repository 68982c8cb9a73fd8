"""JAAS configuration lines: a login module and its options (org.apache.kafka.common.security.JaasConfig).

The syntax is `<module> <control flag> (<option>=<value>)*;`. Errors never quote the line: it contains passwords.
"""

import re
from collections.abc import Iterator, Mapping

from attrs import field, frozen

from aclog.metalog.errors import ConfigError

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"

_FLAGS = ("required", "requisite", "sufficient", "optional")
# Java's StreamTokenizer as JaasConfig sets it up: comments, quoted strings with escapes, words, and the marks = and ;
_TOKEN = re.compile(
    r"""(?P<blank>[\x00-\x20]+ | //[^\n\r]* | /\*.*?\*/ | /[^\n\r]*)
      | "(?P<double>(?:[^"\\\n\r] | \\[^\n\r])*)"
      | '(?P<single>(?:[^'\\\n\r] | \\[^\n\r])*)'
      | (?P<word>[A-Za-z_$\xa0-\U0010ffff][-A-Za-z0-9_$.\xa0-\U0010ffff]*)
      | (?P<mark>[=;])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@frozen(kw_only=True)
class JaasEntry:
    """A login module's class and its options; the repr shows only their number, as they include passwords."""

    module: str
    options: Mapping[str, str] = field(repr=lambda options: f"{len(options)} options")


def parse_jaas(text: str) -> JaasEntry:
    """Parse the one login module of a sasl.jaas.config value.

    Raises:
        ConfigError: malformed, or several modules.

    """
    tokens = list(_tokens(text))
    kinds = [kind for kind, _ in tokens]
    if kinds[:2] != ["word", "word"] or tokens[1][1].lower() not in _FLAGS:
        raise _malformed("it does not begin with a login module's class and a control flag such as 'required'")
    if kinds[-1] != ";":
        raise _malformed("it does not end with ';'")
    if kinds.count(";") > 1:
        raise _malformed("more than one login module")
    options = {}
    body = tokens[2:-1]
    for name, equals, value in zip(body[0::3], body[1::3], body[2::3], strict=False):
        if name[0] not in {"word", "quoted"} or equals[0] != "=" or value[0] not in {"word", "quoted"}:
            raise _malformed('an option that is not <name>="<value>"')
        options[name[1]] = value[1]
    if len(body) % 3:
        raise _malformed('an option that is not <name>="<value>"')
    return JaasEntry(module=tokens[0][1], options=options)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise _malformed(f"character {position + 1} is not allowed outside quotes")
        position = found.end()
        kind = str(found.lastgroup)
        if kind == "mark":
            yield found["mark"], ""
        elif kind == "word":
            yield kind, found["word"]
        elif kind != "blank":
            yield "quoted", _ESCAPE.sub(_unescaped, found[kind])


def _unescaped(found: re.Match[str]) -> str:
    escaped = found[1]
    return chr(int(escaped, 8)) if escaped[0] in "01234567" else _ESCAPED.get(escaped, escaped)


def _malformed(what: str) -> ConfigError:
    return ConfigError(f'not a JAAS line: {what}: expected <login module> required <option>="<value>" ... ;')
