"""What may stand in the path or beside it: haproxy, nginx, socat, tcpdump, ztape proxy; each started, accounted for, ended.

A `Middle` is one such arrangement for one run. The port is where the client connects.
"""

import os
import pathlib
import re
import signal
import struct
import threading
import time

import harness
from harness import BenchError, Process


def start_server(program, chain, cpus=None, options=(), prefix=()):
    """(process, port) of block_server."""
    server = Process([*prefix, program, str(chain), *options], cpus)
    return server, int(re.match(r"listening on port (\d+)", server.first_line()).group(1))


class Middle:
    """Processes between client and server or beside them. `finish` ends them and fills in what they cost."""

    def __init__(self, port):
        self.port = port
        self.relay = None  # Process
        self.recorder = None  # Process; the same one as `relay` for ztape
        self.capture = None  # path
        self.cpu_seconds = {}  # role -> whole life
        self.rss_mb = {}
        self.lost_bytes = None
        self.kernel_drops = None
        self.sink = None

    def processes(self):
        roles = {"relay": self.relay, "recorder": self.recorder}
        return {role: process for role, process in roles.items() if process}

    def finish(self):
        for role, process in self.processes().items():
            self.rss_mb[role] = process.peak_resident_mb()
        if self.relay and self.relay is not self.recorder:
            self.relay.stop(signal.SIGTERM)
        if self.recorder:
            self.end_recorder()
        if self.sink:
            self.sink.join()
        for role, process in self.processes().items():
            self.cpu_seconds[role] = process.cpu_seconds

    def end_recorder(self):
        raise NotImplementedError

    def kill(self):
        for process in self.processes().values():
            process.stop(signal.SIGKILL)
        if self.capture:
            self.capture.unlink(missing_ok=True)


class SlowSink(threading.Thread):
    """The reader of a FIFO that takes so many bytes a second: a slow disk for whoever writes into it."""

    def __init__(self, path, bytes_per_second):
        super().__init__(daemon=True)
        self.path, self.bytes_per_second, self.bytes = path, bytes_per_second, 0
        os.mkfifo(path, 0o600)
        self.start()

    def run(self):
        with open(self.path, "rb", buffering=0) as pipe:
            began = None
            while block := pipe.read(1 << 16):
                began = began or time.monotonic()
                self.bytes += len(block)
                ahead = self.bytes / self.bytes_per_second - (time.monotonic() - began)
                if ahead > 0.002:
                    time.sleep(ahead)


def lost_bytes(status, page, errors):
    """Out of the proxy's summary: "lost: nothing", "lost: 12 chunks with 345,678 bytes, ..."."""
    if re.search(r"^lost: nothing$", page, re.MULTILINE):
        return 0
    lost = re.search(r"^lost: .*? with ([\d,]+) byte", page, re.MULTILINE)
    if not lost:
        raise BenchError(f"ztape proxy ended with {status} and no account of what it lost: {errors.strip()}")
    return int(lost.group(1).replace(",", ""))


class Ztape(Middle):
    def __init__(self, program, upstream_port, capture, cpus, options=(), listen="127.0.0.1:0", upstream_host="127.0.0.1", prefix=()):
        process = Process([*prefix, program, "proxy", "--listen", listen, "--upstream", f"http://{upstream_host}:{upstream_port}",
                           "-w", str(capture), "--force", *options], cpus)
        super().__init__(int(re.match(r"listening on [^ ]*:(\d+),", process.first_line()).group(1)))
        self.relay = self.recorder = process
        self.capture = capture
        self.status = None

    def end_recorder(self):
        self.status, page, errors = self.recorder.stop(signal.SIGINT)
        self.lost_bytes = lost_bytes(self.status, page, errors)
        if self.lost_bytes == 0 and self.status != 0:
            raise BenchError(f"ztape proxy says it lost nothing and ends with {self.status}: {errors.strip()}")


class Haproxy(Middle):
    """Mode tcp, idle timeouts out of the way, one thread a connection needs and no more; setting: (buffer bytes, splice option or "")."""

    def __init__(self, upstream_port, folder, cpus, setting, threads=1):
        port = harness.free_port()
        super().__init__(port)
        buffer_bytes, splice = setting
        config = folder / "haproxy.cfg"
        config.write_text(
            f"global\n  nbthread {threads}\n  maxconn 5000\n  tune.bufsize {buffer_bytes}\n  tune.pipesize 1048576\n"
            "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 300s\n  timeout server 300s\n"
            f"  {splice and 'option ' + splice}\n"
            f"listen relay\n  bind 127.0.0.1:{port}\n  server s 127.0.0.1:{upstream_port}\n")
        self.relay = Process(["haproxy", "-db", "-q", "-f", str(config)], cpus)
        harness.wait_for_listener(port, self.relay)


class Nginx(Middle):
    def __init__(self, upstream_port, folder, cpus, buffer_bytes=262144):
        port = harness.free_port()
        super().__init__(port)
        module = next((m for m in ("/usr/lib/nginx/modules/ngx_stream_module.so",) if os.path.exists(m)), None)
        config = folder / "nginx.conf"
        config.write_text(
            (f"load_module {module};\n" if module else "")
            + f"daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr error;\n"
            f"events {{ worker_connections 8192; }}\nstream {{ server {{ listen 127.0.0.1:{port}; tcp_nodelay on; "
            f"proxy_buffer_size {buffer_bytes}; proxy_pass 127.0.0.1:{upstream_port}; }} }}\n")
        self.relay = Process(["nginx", "-c", str(config), "-p", str(folder)], cpus)
        harness.wait_for_listener(port, self.relay)


class Socat(Middle):
    def __init__(self, upstream_port, cpus):
        port = harness.free_port()
        super().__init__(port)
        self.relay = Process(["socat", "-b262144", f"TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork,nodelay",
                              f"TCP:127.0.0.1:{upstream_port},nodelay"], cpus)
        harness.wait_for_listener(port, self.relay)
        time.sleep(0.05)  # the child of the probing connection ends


class Tcpdump(Middle):
    """Beside another Middle, or beside a direct connection. It sees the port the client connects to, so that each byte
    is recorded once. ("inbound" in its filter would spare the ring the copy of each packet that leaves the loopback device,
    but libpcap filters its first blocks itself, cannot evaluate the word there, and loses the start without counting it.)"""

    def __init__(self, inner, capture, cpus, ring_kib):
        super().__init__(inner.port)
        self.inner, self.relay, self.capture = inner, inner.relay, capture
        self.recorder = Process(["tcpdump", "-Z", "root", "-i", "lo", "-n", "-s", "0", "-B", str(ring_kib), "-w", str(capture),
                                 f"tcp port {inner.port}"], cpus)
        line = self.recorder.child.stderr.readline()
        if "listening on" not in line:
            raise BenchError(f"tcpdump: {line.strip()} {self.recorder.child.stderr.read().strip()}")

    def end_recorder(self):
        # It does not read its ring to the end when it is stopped; a block of the ring is handed over after a second at most.
        # (1.3 s: the kernel retires a block that is not full after tcpdump's to_ms of 1,000 ms.)
        seen, since = -1, time.monotonic()
        while time.monotonic() - since < 1.3:
            time.sleep(0.05)
            used = self.recorder.running_cpu_seconds() if self.sink else self.capture.stat().st_size
            if used != seen:
                seen, since = used, time.monotonic()
        _, _, errors = self.recorder.stop(signal.SIGINT)
        dropped = re.search(r"(\d+) packets? dropped by kernel", errors)
        if not dropped:
            raise BenchError(f"tcpdump gave no account of what it dropped: {errors.strip()}")
        self.kernel_drops = int(dropped.group(1))


class _Stream:
    """How much of a TCP stream is there without a hole, by its segments in whatever order."""

    def __init__(self, first_sequence):
        self.first = first_sequence
        self.end = 0
        self.ahead = {}  # segments behind a hole: two CPUs may hand over packets the other way round

    def add(self, sequence, length):
        # Right as long as segments are less than 2 GiB out of order.
        begin = self.end + ((sequence - self.first - self.end + (1 << 31)) % (1 << 32)) - (1 << 31)
        if begin > self.end:
            self.ahead[begin] = max(self.ahead.get(begin, 0), begin + length)
            return
        self.end = max(self.end, begin + length)
        while self.ahead and (next_begin := min(self.ahead)) <= self.end:
            self.end = max(self.end, self.ahead.pop(next_begin))


def captured_stream_bytes(path, server_port):
    """Bytes of TCP payload from `server_port`, without a hole, out of a pcap file of IPv4; the SYN must be in it."""
    streams = {}
    with open(path, "rb") as file:
        magic, = struct.unpack("<I", file.read(24)[:4])
        if magic not in (0xA1B2C3D4, 0xA1B23C4D):
            raise BenchError(f"{path}: no pcap file of this machine's byte order")
        while len(head := file.read(16)) == 16:
            length = struct.unpack_from("<I", head, 8)[0]
            start = file.read(min(length, 134))  # Ethernet, IPv4, TCP with all options
            file.seek(length - len(start), 1)
            header = (start[14] & 15) * 4
            total = struct.unpack_from(">H", start, 16)[0] or length - 14  # 0: a segment too long for the field
            source, target, sequence = struct.unpack_from(">HHI", start, 14 + header)
            if source != server_port:
                continue
            flags = start[14 + header + 13]
            payload = total - header - (start[14 + header + 12] >> 4) * 4
            if flags & 2:  # SYN
                streams[target] = _Stream(sequence + 1)
            if payload > 0 and target in streams:
                streams[target].add(sequence, payload)
    return sum(stream.end for stream in streams.values())
