"""Drives `ztape serve` with back-to-back unary calls over one raw HTTP/2 connection and looks for the 40 ms floor."""

import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

CALLS = 100
FLOOR_MS = (30, 60)  # the delayed-ACK timer: 40 ms, and a tick of the kernel's clock
NO_FLOOR_MS = 5
PATH = b"/cash.z.wallet.sdk.rpc.CompactTxStreamer/GetLatestBlock"
DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY = 0, 1, 3, 4, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def header(name, value):
    """A literal field without indexing (RFC 7541, section 6.2.2); all our lengths are below 127."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def request(stream):
    fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", PATH), (b":authority", b"localhost"),
              (b"content-type", b"application/grpc"), (b"te", b"trailers")]
    block = b"".join(header(name, value) for name, value in fields)
    # An Empty message; one write, as wallets do.
    return frame(HEADERS, END_HEADERS, stream, block) + frame(DATA, END_STREAM, stream, bytes(5))


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0))
        self.bytes = b""

    def take(self, count):
        while len(self.bytes) < count:
            more = self.socket.recv(65536)
            if not more:
                raise SystemExit("floor: the server closed the connection")
            self.bytes += more
        taken, self.bytes = self.bytes[:count], self.bytes[count:]
        return taken

    def call(self, stream):
        """Milliseconds from the request to the end of its answer."""
        start = time.monotonic_ns()
        self.socket.sendall(request(stream))
        while True:
            head = self.take(9)
            payload = self.take(int.from_bytes(head[:3], "big"))
            kind, flags, of = head[3], head[4], int.from_bytes(head[5:9], "big")
            if kind in (GOAWAY, RST_STREAM):
                raise SystemExit(f"floor: the server sent frame type {kind}: {payload!r}")
            if kind == SETTINGS and not flags & ACK:
                self.socket.sendall(frame(SETTINGS, ACK, 0))
            if of == stream and kind in (DATA, HEADERS) and flags & END_STREAM:
                return (time.monotonic_ns() - start) / 1e6


def measure(program, capture, options):
    server = subprocess.Popen([program, "serve", "-r", capture, "--listen", "127.0.0.1:0", *options],
                              stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        port = int(line.split(",")[0].rsplit(":", 1)[1])
        connection = Connection(port)
        times = sorted(connection.call(1 + 2 * i) for i in range(CALLS))
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=30)
    return statistics.median(times), times[int(CALLS * 0.95)]


def main():
    program = sys.argv[1]
    fixture = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "zaino-zingo"
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        capture = folder + "/sync.ztape"
        subprocess.run([program, "import", str(fixture), "-w", capture], check=True, stdout=subprocess.DEVNULL)
        print(f"GetLatestBlock, {CALLS} calls back to back on one connection, loopback; milliseconds")
        for name, options, (low, high) in (
                ("without TCP_NODELAY, split writes", ["--nodelay", "off", "--writes", "split"], FLOOR_MS),
                ("with TCP_NODELAY, split writes", ["--nodelay", "on", "--writes", "split"], (0, NO_FLOOR_MS)),
                ("with TCP_NODELAY, recorded writes", ["--nodelay", "on"], (0, NO_FLOOR_MS))):
            p50, p95 = measure(program, capture, options)
            good = low <= p50 <= high
            failed += not good
            verdict = "as expected" if good else f"WRONG: {low} to {high} expected"
            print(f"  {name:<36} p50 {p50:7.3f}  p95 {p95:7.3f}  {verdict}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
