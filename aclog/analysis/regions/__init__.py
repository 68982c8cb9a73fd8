"""Sets of requests as values: regions, what they are products of, queries, and examples of them."""
