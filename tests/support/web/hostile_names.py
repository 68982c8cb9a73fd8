"""Names that clients choose to harm who looks at them."""

from aclog.metalog.printable import printable

NAMES = {
    "script": "<script>alert(1)</script>",
    "image": '"><img src=x onerror=alert(1)>',
    "attribute": "' autofocus onfocus='alert(1)",
    "address": "javascript:alert(1)",
    "template": "{{ 7 * 7 }}{% raw %}",
    "query": "a%41&name=b#c+d;e",
    "backwards": "invoice\u202egnp.exe",
    "escape": "voucher\\u202egnp.exe",
    "blanks": "  two  blanks ",
    "lines": "first\r\nsecond\ttabbed",
    "nul": "before\0after",
    "long": "x" * 249,
    "combining": "e\u0301\u0301\u0301\u200b\ufeff",
}


def shown(text: str) -> str:
    """A text as it is shown, and as blanks are folded where they are."""
    return " ".join(printable(text).split())
