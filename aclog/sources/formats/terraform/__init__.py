"""Terraform as a source of rules: configurations in HCL and JSON, plans and states.

Begin with `configuration.py` and `evaluation.py`.
"""

from aclog.sources.formats.terraform.configuration import claims, read

__all__ = ["claims", "read"]
