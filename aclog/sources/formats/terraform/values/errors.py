"""Why an expression has no value; the evaluator adds file and line."""


class ValueFault(Exception):  # noqa: N818
    """What is wrong with an operand, an argument or a conversion, in words; it never shows a value."""
