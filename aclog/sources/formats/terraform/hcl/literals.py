"""Literal text of HCL: its escapes."""

import re

from aclog.sources.formats.terraform.values.errors import ValueFault

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.|\Z)|(\$\$|%%)(?=\{)", re.DOTALL)
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}


def unquoted(text: str) -> str:
    """Return what text between quotes stands for.

    Raises:
        ValueFault: an escape that HCL does not know, or a line that ends within the quotes.

    """
    if "\n" in text:
        raise ValueFault("a line ends inside quotes: use a heredoc, or \\n")
    if "\\" not in text and "{" not in text:
        return text
    return _ESCAPE.sub(_unescape, text)


def unescaped_template(text: str) -> str:
    """Return what the text of a heredoc or a template file stands for: only `$${` and `%%{` are escapes there."""
    return text.replace("$${", "${").replace("%%{", "%{")


def _unescape(found: re.Match[str]) -> str:
    if found[2]:
        return found[2][0]
    code = found[1]
    if code in _SIMPLE:
        return _SIMPLE[code]
    if code[:1] in ("u", "U") and len(code) > 1:
        point = int(code[1:], 16)
        if point <= 0x10FFFF and not 0xD800 <= point < 0xE000:
            return chr(point)
    raise ValueFault(f'\\{code} is not an escape of HCL: expected one of \\n \\r \\t \\" \\\\ \\uNNNN \\UNNNNNNNN')
