"""Analysis of policies as regions of requests: exact differences, proofs, who can and what can. Pure: no I/O."""
