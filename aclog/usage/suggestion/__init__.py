"""The least rules that suffice: what an access log used of a set of rules, and nothing beyond them."""
