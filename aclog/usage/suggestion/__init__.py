"""The least rules that keep every access of a log and give nothing that the present rules do not give."""
