"""The principal of a TLS client (DefaultKafkaPrincipalBuilder)."""

import ssl

from aclog.authorizer.principals import KafkaPrincipal
from aclog.metalog.errors import DecodeError
from aclog.nodes.config.principal_mapping import NoMatchingRuleError, SslPrincipalMapper
from aclog.nodes.security.distinguished_name import subject
from aclog.nodes.security.errors import AuthenticationError
from aclog.nodes.session import ANONYMOUS


def peer_principal(connection: object, mapper: SslPrincipalMapper) -> KafkaPrincipal:
    """Return the principal of the peer of an ssl_object; ANONYMOUS if it presented no certificate.

    Raises:
        AuthenticationError: No mapping rule matches the certificate's subject, or the subject is unreadable.

    """
    if not isinstance(connection, ssl.SSLObject | ssl.SSLSocket) or connection.context.verify_mode == ssl.CERT_NONE:
        return ANONYMOUS
    certificate = connection.getpeercert(binary_form=True)
    if certificate is None:
        return ANONYMOUS
    try:
        name = subject(certificate)
    except DecodeError as error:
        raise AuthenticationError(f"unreadable certificate subject: {error}") from error
    try:
        return KafkaPrincipal(type="User", name=mapper.name(name))
    except NoMatchingRuleError as error:
        raise AuthenticationError(str(error)) from error
