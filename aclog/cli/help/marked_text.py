"""Help texts as commands have them, in rich's markup, for output that knows nothing of it."""

import re

_SPAN = re.compile(r"(?<!\\)\[(cyan|bold|dim)\](.*?)(?<!\\)\[/\1?\]", re.DOTALL)


def marked(text: str, begin: str = "", end: str = "") -> str:
    """Return a text in rich's markup as plain text, with what is literal in it (cyan) between two marks."""

    def span(found: re.Match[str]) -> str:
        """Return one marked part."""
        inner = found[2].replace("\\[", "[")
        return f"{begin}{inner}{end}" if found[1] == "cyan" else inner

    return _SPAN.sub(span, text).replace("\\[", "[")
