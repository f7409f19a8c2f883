"""./dev soak: `ztape proxy` under a mixed load while everything around it breaks, and the proof that it recorded all.

    clients --- witness --- ztape proxy --- witness --- server
    (grpc++)    (front)                     (back)      (grpc++)

The witnesses count and hash what crosses at the proxy's two sides (witness.cc); at the end compare.cc holds their logs
against the captures. README.md says what is broken meanwhile and what is proven.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

# First quarter against last: allocators and caches fill up for a while, a leak does not stop.
RSS_FACTOR = 1.5
RSS_SLACK = 24 << 20


def size_of(text):
    number, unit = re.fullmatch(r"(\d+)([KMG]?)", text).groups()
    return int(number) << {"": 0, "K": 10, "M": 20, "G": 30}[unit]


def readable(count):
    for unit in ("B", "KiB", "MiB"):
        if count < 10_000:
            return f"{count:,.0f} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"


class Child:
    """A process whose stdout is followed: its first line, and the last JSON line it printed."""

    def __init__(self, name, arguments, log):
        self.name = name
        self.log_path = log
        with open(log, "ab") as errors:
            self.process = subprocess.Popen([str(a) for a in arguments], stdout=subprocess.PIPE, stderr=errors,
                                            stdin=subprocess.DEVNULL, text=True, errors="replace")
        self.pid = self.process.pid
        self.lines = []
        self.counts = {}
        self.first = threading.Event()
        self.reader = threading.Thread(target=self._follow, daemon=True)
        self.reader.start()

    def _follow(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                self.counts = json.loads(line)
            else:
                self.lines.append(line.rstrip("\n"))
            self.first.set()
        self.first.set()

    def address(self):
        if not self.first.wait(60) or not self.lines or not self.lines[0].startswith("listening on "):
            raise SystemExit(f"soak: {self.name} did not start: {self.errors()}")
        return self.lines[0].removeprefix("listening on ").split(",")[0]

    def alive(self):
        return self.process.poll() is None

    def errors(self):
        return pathlib.Path(self.log_path).read_text(errors="replace").strip()[-2000:]

    def end(self, number=signal.SIGTERM, seconds=120):
        """Its exit status."""
        if self.alive():
            self.process.send_signal(number)
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = f"hung after signal {number}"
        self.reader.join(10)
        return status

    def rss(self):
        try:
            text = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return 0
        found = re.search(r"VmRSS:\s+(\d+)", text)
        return int(found.group(1)) * 1024 if found else 0


# --- peers without manners: plain sockets to the front witness ---------------------------------------------------------

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    assert len(name) < 127 and len(value) < 127
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def request(path, body):
    fields = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"soak"),
              (b"te", b"trailers"), (b"content-type", b"application/grpc"))
    message = b"\x00" + struct.pack(">I", len(body)) + body
    return (PREFACE + frame(4, 0, 0, struct.pack(">HI", 4, 0x7FFFFFFF)) + frame(8, 0, 0, struct.pack(">I", 0x7FFF0000))
            + frame(1, 4, 1, b"".join(literal(*field) for field in fields)) + frame(0, 1, 1, message))


SMALL_CALL = request(b"/cash.z.wallet.sdk.rpc.CompactTxStreamer/GetLightdInfo", b"")
# Blocks 500,000 to 500,319: 20 MiB.
LARGE_CALL = request(b"/cash.z.wallet.sdk.rpc.CompactTxStreamer/GetBlockRange",
                     bytes.fromhex("0a0408a0c21e" "120408dfc41e"))


class Rudeness:
    """Each method is one peer's life; `still` says that the soak goes on."""

    def __init__(self, address, seed, still):
        host, port = address.rsplit(":", 1)
        self.address, self.random, self.still = (host, int(port)), random.Random(seed), still

    def connect(self):
        connection = socket.create_connection(self.address, timeout=10)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def wait(self, seconds):
        until = time.monotonic() + seconds
        while self.still() and time.monotonic() < until:
            time.sleep(0.1)

    def leave(self, connection):
        if self.random.random() < 0.5:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    def garbage(self):
        connection = self.connect()
        for _ in range(self.random.randrange(1, 20)):
            connection.sendall(self.random.randbytes(int(2 ** self.random.uniform(0, 18))))
        if self.random.random() < 0.5:
            connection.shutdown(socket.SHUT_WR)
            self.wait(1)
        self.leave(connection)

    def garbage_after_preface(self):
        connection = self.connect()
        connection.sendall(PREFACE + frame(4, 0, 0, b"") + self.random.randbytes(self.random.randrange(1, 50_000)))
        self.wait(0.5)
        self.leave(connection)

    def byte_by_byte(self):
        connection = self.connect()
        for byte in SMALL_CALL:
            connection.sendall(bytes([byte]))
            time.sleep(self.random.uniform(0, 0.01))
        connection.recv(65536)
        self.wait(1)
        self.leave(connection)

    def half_open(self):
        connection = self.connect()
        connection.sendall(PREFACE[:self.random.randrange(0, len(PREFACE))])
        self.wait(self.random.uniform(1, 30))
        self.leave(connection)

    def half_close(self):
        connection = self.connect()
        connection.sendall(LARGE_CALL[:self.random.choice((20, len(LARGE_CALL)))])
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(1)
        try:
            while self.still() and connection.recv(65536):
                pass
        except TimeoutError:
            pass
        self.wait(self.random.uniform(0, 5))
        self.leave(connection)

    def never_reads(self):
        connection = self.connect()
        connection.sendall(LARGE_CALL)
        self.wait(self.random.uniform(1, 15))
        self.leave(connection)

    def many_at_once(self):
        connections = [self.connect() for _ in range(self.random.randrange(20, 200))]
        for connection in connections[::3]:
            connection.sendall(PREFACE)
        self.wait(self.random.uniform(0, 2))
        for connection in connections:
            self.leave(connection)

    def live(self, kind):
        try:
            getattr(self, kind)()
        except OSError:
            pass  # what it was connected to was broken by another fault


RUDE = ("garbage", "garbage_after_preface", "byte_by_byte", "half_open", "half_close", "never_reads", "many_at_once")


# --- the run -----------------------------------------------------------------------------------------------------------

class Soak:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.random = random.Random(options.seed)
        self.build = pathlib.Path(options.build)
        self.problems = []
        self.faults = {}
        self.rude = []
        self.stalling = None
        self.going = True
        self.past = {"calls": 0, "failed": 0, "wrong": 0}  # of clients that are gone
        self.rss = []  # (seconds, bytes)

    def tool(self, name):
        return self.build / "tests" / name

    def log(self, name):
        return self.folder / f"{name}.log"

    def start(self):
        self.start_server("127.0.0.1:0")
        self.server_address = self.server.address()
        seeds = [str(self.random.getrandbits(32)) for _ in range(2)]
        per_thousand = str(self.options.faults_per_thousand)
        self.back = Child("the witness behind", [self.tool("soak/soak_witness"), "back", "127.0.0.1:0",
                          self.server_address, self.folder / "back.tsv", seeds[0], per_thousand], self.log("back"))
        self.proxy = Child("ztape proxy", [*self.disk(), self.build / "ztape", "proxy", "--upstream", "http://" + self.back.address(),
                           "--listen", "127.0.0.1:0", "-w", self.folder / "soak.ztape", *self.rotation(),
                           *(["--when-disk-is-slow", "hold"] if self.options.stall_seconds else []),
                           *self.options.proxy], self.log("proxy"))
        self.front = Child("the witness before", [self.tool("soak/soak_witness"), "front", "127.0.0.1:0",
                           self.proxy.address(), self.folder / "front.tsv", seeds[1], per_thousand], self.log("front"))
        self.clients = [self.start_client() for _ in range(self.options.clients)]

    def rotation(self):
        text = subprocess.run([self.build / "ztape", "proxy", "--help"], capture_output=True, text=True).stdout
        return ["--rotate-bytes", self.options.rotate_bytes] if "--rotate-bytes" in text else []

    def disk(self):
        """What stands before the proxy, so that its disk stalls when we say so (tests/support/disk_shim.cc)."""
        if not self.options.stall_seconds:
            return []
        return ["env", f"LD_PRELOAD={(self.tool('support/libdisk_shim.so')).resolve()}", f"ZTAPE_SHIM={self.folder / 'disk'}"]

    def stall(self):
        self.count("disk stalls")
        wish = self.folder / "disk"
        wish.write_text("stall 1\n")
        ends = time.monotonic() + self.options.stall_seconds
        while self.going and time.monotonic() < ends:
            time.sleep(0.05)
        wish.unlink()

    def start_server(self, address):
        self.server = Child("peer_server", [self.tool("peer/peer_server"), "--listen", address], self.log("server"))

    def start_client(self):
        return Child("soak_load", [self.tool("soak/soak_load"), self.front.address(), self.random.getrandbits(32),
                     self.options.wallets, size_of(self.options.bytes_per_second) // self.options.clients],
                     self.log("clients"))

    def client_gone(self, client):
        for key in self.past:
            self.past[key] += client.counts.get(key, 0)

    def count(self, fault):
        self.faults[fault] = self.faults.get(fault, 0) + 1

    def one_fault(self):
        kind = self.random.choice(("client", "server", "hangup", *RUDE, *RUDE))
        self.count({"client": "clients killed", "server": "servers killed", "hangup": "SIGHUP"}.get(
            kind, kind.replace("_", " ")))
        if kind == "client":
            index = self.random.randrange(len(self.clients))
            self.clients[index].end(signal.SIGKILL)
            self.client_gone(self.clients[index])
            self.clients[index] = self.start_client()
        elif kind == "server":
            self.server.end(signal.SIGKILL)
            time.sleep(self.random.uniform(0, 0.5))
            self.start_server(self.server_address)
            self.server.address()
        elif kind == "hangup":
            self.proxy.process.send_signal(signal.SIGHUP)
        else:
            peer = Rudeness(self.front.address(), self.random.getrandbits(32), lambda: self.going)
            thread = threading.Thread(target=peer.live, args=(kind,), daemon=True)
            thread.start()
            self.rude = [one for one in self.rude if one.is_alive()] + [thread]

    def check_alive(self):
        for child in (self.proxy, self.front, self.back, self.server):
            if not child.alive():
                self.problems.append(f"{child.name} ended by itself with {child.process.returncode}: {child.errors()}")
                return False
        for index, client in enumerate(self.clients):
            if not client.alive():
                self.problems.append(f"a client ended by itself with {client.process.returncode}")
                self.client_gone(client)
                self.clients[index] = self.start_client()
        return True

    def totals(self):
        return {key: self.past[key] + sum(client.counts.get(key, 0) for client in self.clients) for key in self.past}

    def captures(self):
        # By the time they were opened: the file with the first name may be the newest or the oldest.
        files = [path for path in self.folder.iterdir() if ".ztape" in path.name]
        return sorted(files, key=lambda path: (path.stat().st_mtime_ns, path.name))

    def line(self, elapsed):
        totals, front = self.totals(), self.front.counts
        lost = len(re.findall(r"without being recorded|gap", self.proxy.errors()))
        written = sum(path.stat().st_size for path in self.captures())
        print(f"{elapsed / 60:6.1f} min  {totals['calls']:>9,} calls ({totals['failed']:,} cut off, {totals['wrong']} wrong)  "
              f"{front.get('connections', 0):>7,} connections ({front.get('open', 0)} open)  "
              f"{readable(front.get('bytes', 0)):>11} crossed  {readable(written):>11} written  "
              f"RSS {readable(self.proxy.rss()):>10}  lost {lost or 'nothing'}  {sum(self.faults.values()):>5} faults", flush=True)

    def run(self):
        began = time.monotonic()
        next_line = 60
        next_stall = 20 if self.options.stall_seconds else float("inf")
        next_fault = self.random.expovariate(self.options.faults_per_second)
        while (elapsed := time.monotonic() - began) < self.options.seconds:
            self.rss.append((elapsed, self.proxy.rss()))
            if not self.check_alive():
                return
            if elapsed >= next_line:
                self.line(elapsed)
                next_line += 60
                if shutil.disk_usage(self.folder).free < 2 << 30:
                    self.problems.append("the disk is nearly full")
                    return
            if elapsed >= next_stall:
                next_stall += 60
                self.stalling = threading.Thread(target=self.stall, daemon=True)
                self.stalling.start()
            while elapsed >= next_fault:
                next_fault += self.random.expovariate(self.options.faults_per_second)
                self.one_fault()
            time.sleep(0.05)
        self.line(elapsed)

    def end(self):
        """SIGTERM to the proxy while the load is on; only that nobody comes new, whom it would not have taken."""
        if self.stalling:
            self.stalling.join()
        self.front.process.send_signal(signal.SIGUSR1)
        time.sleep(0.5)
        self.back.process.send_signal(signal.SIGUSR1)
        time.sleep(0.2)
        status = self.proxy.end()
        self.going = False
        page = "\n".join(self.proxy.lines)
        # A server that dies at once may leave the proxy unconnected, which it says by a 3 as well.
        unconnected = status == 3 and "not connected upstream" in page and "lost: nothing" in page
        if status != 0 and not unconnected:
            self.problems.append(f"ztape proxy ended with {status}: {self.proxy.errors()}")
        time.sleep(0.5)  # what the proxy sent last is on its way through the witnesses
        for client in self.clients:
            client.end()
            self.client_gone(client)
        self.clients = []
        for child in (self.front, self.back, self.server):
            child.end()
        if self.past["wrong"]:
            self.problems.append(f"{self.past['wrong']} wrong answers")

    def verify(self):
        captures = self.captures()
        whole = 0
        for path in captures:
            done = subprocess.run([self.build / "ztape", "verify", "-r", path], capture_output=True, text=True)
            whole += done.returncode == 0
            if done.returncode != 0:
                self.problems.append(f"ztape verify: {done.returncode}: {done.stdout} {done.stderr}")
        if not captures:
            self.problems.append("no capture")
        return len(captures), whole

    def compare(self, front="front.tsv"):
        done = subprocess.run([self.tool("soak/soak_compare"), self.folder / front, self.folder / "back.tsv",
                               *self.captures()], capture_output=True, text=True)
        return done.returncode, json.loads(done.stdout or "{}"), done.stderr.strip()

    def spoil(self):
        """What the comparison must find: a log with another hash, another count, one connection too many or too few."""
        rows = [line.split("\t") for line in (self.folder / "front.tsv").read_text().splitlines()]
        index = max(i for i, row in enumerate(rows) if int(row[2]) > 0 and int(row[4]) > 0)

        def variant(column, change):
            changed = [list(row) for row in rows]
            changed[index][column] = change(changed[index][column])
            return changed

        variants = {
            "another hash received": variant(5, lambda text: f"{int(text, 16) ^ 1:016x}"),
            "one byte more received": variant(4, lambda text: str(int(text) + 1)),
            "another connection": variant(1, lambda text: "127.0.0.9:9"),
            "a connection not recorded": rows + [["999999", "127.0.0.9:9", "1", "0" * 16, "1", "0" * 16, "clean", "-"]],
            "fewer bytes sent": variant(2, lambda text: "0"),
        }
        for what, changed in variants.items():
            (self.folder / "spoilt.tsv").write_text("".join("\t".join(row) + "\n" for row in changed))
            status, _, _ = self.compare("spoilt.tsv")
            if status != 1:
                self.problems.append(f"the comparison does not notice {what}: {status}")

    def judge_rss(self):
        end = self.rss[-1][0] if self.rss else 0
        first = [value for at, value in self.rss if end * 0.05 <= at <= end / 4]
        last = [value for at, value in self.rss if at >= end * 3 / 4]
        if not first or not last:
            return None
        first, last, peak = statistics.median(first), statistics.median(last), max(value for _, value in self.rss)
        if last > first * RSS_FACTOR + RSS_SLACK:
            self.problems.append(f"RSS grew from {readable(first)} to {readable(last)}")
        return first, last, peak

    def report(self):
        files, whole = self.verify()
        status, found, errors = self.compare()
        if status != 0:
            self.problems.append(f"the captures are not what the witnesses saw ({status}):\n{errors}")
        if self.options.spoil:
            self.spoil()
        rss = self.judge_rss()
        faults = dict(self.faults)
        for child, name in ((self.front, "before the proxy"), (self.back, "behind the proxy")):
            for kind in ("resets", "half_closes", "stalls", "trickles"):
                faults[f"{kind.replace('_', '-')} {name}"] = child.counts.get(kind, 0)
        rows = [("seed", self.options.seed), ("calls", f"{self.past['calls']:,}"),
                ("  cut off by a fault", f"{self.past['failed']:,}"), ("  wrong answers", self.past["wrong"]),
                ("connections", f"{found.get('connections', 0):,}"),
                ("  equal at both witnesses to the last byte", f"{found.get('exact', 0):,}"),
                ("  cut off: delivered, recorded, sent agree", f"{found.get('cut_off', 0):,}"),
                ("  reset before the proxy took them", f"{found.get('reset_before_taken', 0) + found.get('empty', 0):,}"),
                ("bytes recorded", readable(found.get("bytes", 0))),
                ("bytes delivered, by hash in the captures", f"{found.get('proven_bytes', 0):,}"),
                ("bytes lost", f"{found.get('lost_bytes', '?'):,}"), ("gaps", found.get("gaps", "?")),
                ("captures that verify", f"{whole} of {files}")]
        if rss:
            rows.append(("RSS, first quarter, last quarter, peak", ", ".join(readable(value) for value in rss)))
        rows += [(name, f"{count:,}") for name, count in sorted(faults.items())]
        print()
        for name, value in rows:
            print(f"{name:<44} {value}")
        for problem in self.problems:
            print(f"soak: {problem}", file=sys.stderr)
        print("passed" if not self.problems else "FAILED", flush=True)

    def stop_all(self):
        self.going = False
        for child in [getattr(self, name, None) for name in ("proxy", "front", "back", "server")] + getattr(self, "clients", []):
            if child is not None and child.alive():
                child.process.kill()


def main():
    parser = argparse.ArgumentParser(prog="./dev soak", description="ztape proxy under load while everything breaks; "
                                     "0: verified, nothing lost, every witnessed byte recorded, memory bounded; 1: not")
    parser.add_argument("minutes", nargs="?", type=float, default=2, help="how long (2)")
    parser.add_argument("--seconds", type=float, help="instead of minutes")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"), help="of the faults and the load")
    parser.add_argument("--bytes-per-second", default="8M", metavar="SIZE", help="that the clients ask for, together (8M)")
    parser.add_argument("--clients", type=int, default=3, help="client processes (3)")
    parser.add_argument("--wallets", type=int, default=12, help="in each of them (12)")
    parser.add_argument("--faults-per-second", type=float, default=0.7, help="killed processes and rude peers (0.7)")
    parser.add_argument("--faults-per-thousand", type=int, default=150, metavar="N",
                        help="of so many of 1,000 connections a witness breaks something at each side (150)")
    parser.add_argument("--rotate-bytes", default="256M", metavar="SIZE", help="of the proxy's captures (256M)")
    parser.add_argument("--stall-seconds", type=float, default=0, metavar="N",
                        help="once a minute the disk stalls for so long; with --when-disk-is-slow hold (0: never)")
    parser.add_argument("--keep", metavar="FOLDER", help="where captures and logs go, and stay")
    parser.add_argument("--build", default="build/release", help="the folder with the programs")
    parser.add_argument("--spoil", action="store_true", help="prove too that the comparison can fail")
    parser.add_argument("proxy", nargs="*", help="after --: more options of ztape proxy")
    words = sys.argv[1:]
    more = []
    if "--" in words:
        words, more = words[:words.index("--")], words[words.index("--") + 1:]
    options = parser.parse_args(words)
    options.proxy = more
    if options.seconds is None:
        options.seconds = options.minutes * 60
    with tempfile.TemporaryDirectory(prefix="ztape-soak-", dir=options.build) as temporary:
        folder = pathlib.Path(options.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        needed = int(options.seconds * size_of(options.bytes_per_second) * 1.5) + (2 << 30)
        if shutil.disk_usage(folder).free < needed:
            parser.error(f"the captures may take {readable(needed)}; {folder} has less free: --bytes-per-second makes less")
        if any(".ztape" in path.name for path in folder.iterdir()):
            parser.error(f"{folder} has captures already")
        print(f"{options.seconds / 60:.1f} minutes, seed {options.seed}", flush=True)
        soak = Soak(options, folder)
        try:
            soak.start()
            soak.run()
            soak.end()
            soak.report()
        finally:
            soak.stop_all()
        return 1 if soak.problems else 0


if __name__ == "__main__":
    sys.exit(main())
