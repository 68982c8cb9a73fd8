"""Terraform's language, from bytes to a syntax tree: HCL by tree-sitter, and its form in JSON."""
