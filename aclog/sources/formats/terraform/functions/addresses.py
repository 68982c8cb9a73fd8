"""Functions on ranges of addresses."""

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from types import MappingProxyType

from aclog.sources.formats.terraform.functions.collection_functions import listed, whole
from aclog.sources.formats.terraform.functions.function import Function
from aclog.sources.formats.terraform.values.errors import ValueFault
from aclog.sources.formats.terraform.values.types import NUMBER, STRING
from aclog.sources.formats.terraform.values.value import Value, string


def _network(text: str) -> IPv4Network | IPv6Network:
    if "/" not in text:
        raise ValueFault("not a range of addresses in CIDR notation")
    try:
        return ip_network(text, strict=False)
    except ValueError as error:
        raise ValueFault("not a range of addresses in CIDR notation") from error


def _cidrhost(prefix: Value, host: Value) -> Value:
    network, position = _network(prefix.text), whole(host)
    if not -network.num_addresses <= position < network.num_addresses:
        raise ValueFault("the range has no host with this number")
    return string(str(network[position]))


def _cidrnetmask(prefix: Value) -> Value:
    network = _network(prefix.text)
    if isinstance(network, IPv6Network):
        raise ValueFault("IPv6 has no netmasks")
    return string(str(network.netmask))


def _subnet(network: IPv4Network | IPv6Network, bits: int, position: int) -> IPv4Network | IPv6Network:
    length = network.prefixlen + bits
    if bits < 0 or length > network.max_prefixlen or not 0 <= position < 1 << bits:
        raise ValueFault("the range has no such part")
    start = int(network.network_address) + (position << (network.max_prefixlen - length))
    return type(network)((start, length))


def _cidrsubnet(prefix: Value, bits: Value, position: Value) -> Value:
    return string(str(_subnet(_network(prefix.text), whole(bits), whole(position))))


def _cidrsubnets(prefix: Value, *sizes: Value) -> Value:
    network, found, start = _network(prefix.text), [], 0
    start = int(network.network_address)
    for size in sizes:
        length = network.prefixlen + whole(size)
        if whole(size) < 1 or length > network.max_prefixlen:
            raise ValueFault("the range has no such part")
        width = 1 << (network.max_prefixlen - length)
        start = -(-start // width) * width
        if start + width > int(network.network_address) + network.num_addresses:
            raise ValueFault("the range has not enough room")
        found.append(string(f"{type(network)((start, length))}"))
        start += width
    return listed(found, STRING)


ADDRESS_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "cidrhost": Function(parameters=(STRING, NUMBER), body=_cidrhost),
        "cidrnetmask": Function(parameters=(STRING,), body=_cidrnetmask),
        "cidrsubnet": Function(parameters=(STRING, NUMBER, NUMBER), body=_cidrsubnet),
        "cidrsubnets": Function(parameters=(STRING,), rest=NUMBER, body=_cidrsubnets),
    }
)
