"""SASL and TLS: authentication of clients and servers, mostly without sockets."""
