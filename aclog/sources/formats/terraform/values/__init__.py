"""Terraform's values: types, values, conversion, order (go-cty's semantics)."""
