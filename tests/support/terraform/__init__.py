"""Terraform beside HashiCorp's own parser and values: generators, and the judge in Go (tests/go/terraform)."""
