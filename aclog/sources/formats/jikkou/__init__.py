"""Resources of Jikkou that authorize principals, with the rules that it applies for them."""

from aclog.sources.formats.jikkou.reader import claims, read

__all__ = ["claims", "read"]
