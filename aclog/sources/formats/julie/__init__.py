"""Topologies of JulieOps, with the rules that its access control manager makes of them."""

from aclog.sources.formats.julie.reader import claims, read

__all__ = ["claims", "read"]
