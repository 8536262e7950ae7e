"""Tries to reach servers from a strict sandbox. Prints a line per attempt: `denied NAME` or `ESCAPED NAME`.

The arguments are the ports of servers outside: TCP on 127.0.0.1, TCP on ::1, UDP on 127.0.0.1, and the allowed TCP port
on 127.0.0.1; then the name of an abstract socket. Every server sends `hello` to its clients.
"""

import ctypes
import os
import socket
import subprocess
import sys

tcp4, tcp6, udp, allowed = map(int, sys.argv[1:5])
abstract = "\0" + sys.argv[5]
PROXY = ("127.0.0.1", 3128)
TIMEOUT = 5
libc = ctypes.CDLL(None, use_errno=True)
attempts = []


def attempt(function):
    attempts.append(function)
    return function


def hears(client):
    client.settimeout(TIMEOUT)
    return b"hello" in client.recv(4096)


def connects(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(TIMEOUT)
        client.connect(address)
        return hears(client)


def proxied(request):
    """Returns whether the proxy leads this request to a server."""
    with socket.create_connection(PROXY, TIMEOUT) as client:
        client.sendall(request.encode())
        client.settimeout(TIMEOUT)
        said = b""
        while piece := client.recv(4096):
            said += piece
            if b"hello" in said:
                return True
        return False


def tunnels(name, target):
    def function():
        return proxied(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")

    function.__name__ = name
    attempts.append(function)


@attempt
def connect_to_ipv4_loopback():
    return connects(socket.AF_INET, ("127.0.0.1", tcp4))


@attempt
def connect_to_ipv6_loopback():
    return connects(socket.AF_INET6, ("::1", tcp6))


@attempt
def connect_to_allowed_address_without_the_proxy():
    return connects(socket.AF_INET, ("127.0.0.1", allowed))


@attempt
def connect_to_mapped_address():
    return connects(socket.AF_INET6, ("::ffff:127.0.0.1", tcp4))


@attempt
def connect_to_abstract_socket():
    return connects(socket.AF_UNIX, abstract)


@attempt
def send_datagram():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"ask", ("127.0.0.1", udp))
        return hears(client)


@attempt
def have_an_interface_beside_loopback():
    return any(name != "lo" for _, name in socket.if_nameindex())


@attempt
def ask_the_name_server():
    with open("/etc/resolv.conf") as file:
        servers = [line.split()[1] for line in file if line.startswith("nameserver")]
    question = b"\1\2\1\0\0\1\0\0\0\0\0\0\7example\3com\0\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(TIMEOUT)
        client.sendto(question, (servers[0], 53))
        return len(client.recv(512)) > 0


@attempt
def resolve_a_name():
    return len(socket.getaddrinfo("example.com", 443)) > 0


@attempt
def open_a_raw_socket():
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    return True


@attempt
def connect_by_vsock():
    return connects(socket.AF_VSOCK, (2, tcp4))


@attempt
def add_an_interface():
    words = ["ip", "link", "add", "gt0", "type", "dummy"]
    return subprocess.run(words, capture_output=True, timeout=20).returncode == 0


@attempt
def enter_the_network_of_the_parent():
    descriptor = os.open(f"/proc/{os.getppid()}/ns/net", os.O_RDONLY)
    return libc.setns(descriptor, 0x40000000) == 0 and connects(socket.AF_INET, ("127.0.0.1", tcp4))


@attempt
def connect_from_a_new_network():
    line = f"import socket; socket.create_connection(('127.0.0.1', {tcp4}), 3)"
    words = ["unshare", "--map-root-user", "--net", sys.executable, "-c", line]
    return subprocess.run(words, capture_output=True, timeout=20).returncode == 0


tunnels("tunnel_to_another_port", f"127.0.0.1:{tcp4}")
tunnels("tunnel_to_ipv6_loopback", f"[::1]:{tcp6}")
tunnels("tunnel_to_mapped_address", f"[::ffff:127.0.0.1]:{tcp4}")
tunnels("tunnel_to_decimal_address", f"2130706433:{tcp4}")
tunnels("tunnel_to_octal_address", f"0177.0.0.1:{tcp4}")
tunnels("tunnel_to_short_address", f"127.1:{tcp4}")
tunnels("tunnel_to_localhost", f"localhost:{tcp4}")
tunnels("tunnel_to_localhost_at_the_allowed_port", f"localhost:{allowed}")
tunnels("tunnel_to_any_address", f"0.0.0.0:{tcp4}")
tunnels("tunnel_with_user", f"127.0.0.1:{allowed}@127.0.0.1:{tcp4}")
tunnels("tunnel_with_zero_byte", f"127.0.0.1:{tcp4}\0.127.0.0.1:{allowed}")


@attempt
def get_another_port():
    return proxied(f"GET http://127.0.0.1:{tcp4}/ HTTP/1.1\r\nHost: 127.0.0.1:{allowed}\r\n\r\n")


@attempt
def get_with_user():
    return proxied(f"GET http://127.0.0.1:{allowed}@127.0.0.1:{tcp4}/ HTTP/1.1\r\nHost: x\r\n\r\n")


@attempt
def get_by_host_header():
    return proxied(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{tcp4}\r\n\r\n")


@attempt
def second_request_on_one_connection():
    head = f"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\nCONNECT 127.0.0.1:{tcp4} HTTP/1.1\r\n\r\n"
    return proxied(head)


for function in attempts:
    try:
        escaped = function()
    except Exception:
        escaped = False
    print("ESCAPED" if escaped else "denied", function.__name__, flush=True)
try:
    print("allowed" if proxied(f"CONNECT 127.0.0.1:{allowed} HTTP/1.1\r\n\r\n") else "refused", flush=True)
except OSError as error:
    print("refused", error, flush=True)
print("end", len(attempts), flush=True)
