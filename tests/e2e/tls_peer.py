"""One end of a TLS connection by Python's ssl module: an independent peer for the proxy's tests.

Usage: tls_peer.py server CERT KEY ALPN SEND RECEIVED [END [CLIENT_CA [ADDRESS]]]
       tls_peer.py client ADDRESS CA NAME ALPN SEND RECEIVED COUNT [END]

ALPN: protocols joined by commas, "-" for none. SEND is a file to send, RECEIVED one for what came. The server prints
its address, serves one connection, reads until its end and has sent SEND meanwhile. The client sends, reads COUNT bytes
and ends the connection, or reads to the end where COUNT is 0. END: notify (close_notify and FIN, the default), fin
(without close_notify). CLIENT_CA: the client has to show a certificate by it, "" for none. ADDRESS: where the server listens (127.0.0.1:0). A line on stdout says what was agreed on and how it ended.
"""

import select
import socket
import ssl
import sys

PATIENCE = 60
PIECE = 50_000


def with_alpn(context, words):
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options &= ~0x80  # SSL_OP_IGNORE_UNEXPECTED_EOF, which Python sets: a FIN alone is to be seen
    if words != "-":
        context.set_alpn_protocols(words.split(","))
    return context


def receive_some(stream):
    """Bytes, None where there are none yet, or how the other end's bytes ended: "notify" or "fin"."""
    try:
        return stream.recv(PIECE) or "notify"
    except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return None
    except ssl.SSLEOFError:
        return "fin"
    except ssl.SSLError as error:
        if error.reason == "UNEXPECTED_EOF_WHILE_READING":
            return "fin"
        raise


def send_some(stream, bytes_left):
    try:
        return bytes_left[stream.send(bytes_left[:PIECE]) :]
    except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return bytes_left


def exchange(stream, send_path, received_path, count):
    """Sends and receives at once, on one thread: OpenSSL's connections are no thread's but one's. count 0: to the end.
    How it ended: "open", "notify" or "fin"."""
    stream.setblocking(False)
    with open(send_path, "rb") as file:
        bytes_left = memoryview(file.read())
    total = 0
    ended = None
    with open(received_path, "wb", buffering=0) as file:
        while True:
            if bytes_left:
                bytes_left = send_some(stream, bytes_left)
            piece = None
            if not ended and (count == 0 or total < count):
                piece = receive_some(stream)
            if isinstance(piece, str):
                ended = piece
            elif piece:
                file.write(piece)
                total += len(piece)
            if not bytes_left and (ended or (count and total >= count)):
                return ended or "open"
            if not piece and not select.select([stream], [stream] if bytes_left else [], [], PATIENCE)[0] and not bytes_left:
                raise TimeoutError("nothing came")


def end(stream, how):
    if how == "fin":
        socket.socket.shutdown(stream, socket.SHUT_RDWR)  # the TCP one: Python's TLS one would unwrap
    else:
        try:
            stream.unwrap()
        except (ssl.SSLError, OSError):
            pass  # the other end may have gone
    stream.close()


def converse(stream, send_path, received_path, count, how):
    ended = exchange(stream, send_path, received_path, count)
    stream.settimeout(PATIENCE)
    print(stream.version(), stream.selected_alpn_protocol() or "-", ended, flush=True)
    end(stream, how)


def host_and_port(address):
    host, port = address.rsplit(":", 1)
    return host.strip("[]"), int(port)


def server(certificate, key, alpn, send_path, received_path, how="notify", client_ca=None, address="127.0.0.1:0"):
    context = with_alpn(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), alpn)
    context.load_cert_chain(certificate, key)
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    host, port = host_and_port(address)
    listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    print("%s:%d" % (address.rsplit(":", 1)[0], listener.getsockname()[1]), flush=True)
    accepted, _ = listener.accept()
    accepted.settimeout(PATIENCE)
    try:
        stream = context.wrap_socket(accepted, server_side=True, suppress_ragged_eofs=False)
    except (ssl.SSLError, OSError) as error:
        print("no handshake:", getattr(error, "reason", error), flush=True)
        return
    if client_ca:
        print("client", stream.getpeercert()["subject"][0][0][1], flush=True)
    converse(stream, send_path, received_path, 0, how)


def client(address, ca, name, alpn, send_path, received_path, count, how="notify"):
    context = with_alpn(ssl.create_default_context(cafile=ca), alpn)
    plain = socket.create_connection(host_and_port(address), PATIENCE)
    try:
        stream = context.wrap_socket(plain, server_hostname=name, suppress_ragged_eofs=False)
    except (ssl.SSLError, OSError) as error:
        print("no handshake:", getattr(error, "reason", None) or error, flush=True)
        return
    converse(stream, send_path, received_path, int(count), how)


{"server": server, "client": client}[sys.argv[1]](*sys.argv[2:])
