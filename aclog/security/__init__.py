"""SASL and TLS: authentication of clients and servers, mostly without sockets.

Begin with `sasl.py` and `tls.py`.
"""
