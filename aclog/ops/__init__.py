"""What commands do, as functions on values: lint, tests of rules, reviews, plans, proofs; no flags, no printing."""
