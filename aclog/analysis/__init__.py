"""What a policy allows, as regions of requests: exact differences, proofs, who can and what can. Pure: no I/O.

Begin with `regions.py` (products of five sets) and `comparison.py` (two policies); `who_can.py` and `timeline.py`
answer the other questions.
"""
