#!/usr/bin/python3
"""./dev bench growth: what one more connection, stream, frame and byte cost the recorder, and where that is not flat.

h2load against block_server through `ztape proxy`, which records to tmpfs and holds the traffic rather than lose any.
Messages of all sizes: CPU = a * frames + b * bytes is fitted over them, and a size whose CPU is half as much again as a and
b make of it is not flat. Connections and streams: what a call costs depends on how many of them the kernel hands over in
one read, for every relay; so haproxy runs the same loads, and where ztape's CPU a call rises from fewer to more, half as
much again as haproxy's does, it is not flat.
"""

import argparse
import os
import pathlib
import signal
import socket
import statistics
import sys
import tempfile
import time

import compact_blocks
import contestants
import harness
import load
from harness import BenchError

TMPFS = pathlib.Path("/dev/shm")
FRAME_BYTES = 16384  # the largest DATA frame a client takes that says nothing about it
QUEUE_MB = 8
NOT_FLAT = 1.5
KB_A_CONNECTION = 16  # what an open connection may take
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # with an empty SETTINGS frame


class Point:
    def __init__(self, sweep, label, requests, connections=1, streams=1, message_bytes=1000, messages=1):
        self.sweep, self.label, self.requests, self.connections, self.streams = sweep, label, requests, connections, streams
        self.message_bytes, self.messages = message_bytes, messages
        # A call: HEADERS there, HEADERS and trailers back, and a DATA frame a message or several for a long one.
        self.frames = requests * (3 + messages * -(-(message_bytes + 5) // FRAME_BYTES))
        self.bytes = 0
        self.runs = {"ztape": [], "haproxy": []}  # (CPU seconds, RSS in MB)

    def cpu(self, name="ztape"):
        return statistics.median(cpu for cpu, _ in self.runs[name])

    def rss(self, name="ztape"):
        return statistics.median(rss for _, rss in self.runs[name])

    def allowed_rss(self, lowest):
        return lowest * NOT_FLAT + QUEUE_MB + self.connections * KB_A_CONNECTION / 1024


def fit(points):
    """(a, b) of seconds = a * frames + b * bytes with the least squares of the relative errors; neither below 0.

    points: (frames, bytes, seconds)."""
    rows = [(frames / seconds, count / seconds) for frames, count, seconds in points]
    ff, fb, bb = (sum(row[i] * row[j] for row in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    f, b = (sum(row[i] for row in rows) for i in (0, 1))
    determinant = ff * bb - fb * fb
    if determinant > 1e-9 * ff * bb:
        a, c = (f * bb - b * fb) / determinant, (b * ff - f * fb) / determinant
        if a >= 0 and c >= 0:
            return a, c
        if c < 0:
            return f / ff, 0.0
    return (0.0, b / bb) if bb else (f / ff, 0.0)


def plan(scale):
    def of(count):
        return max(1, int(count * scale))

    points = [Point("connections", f"{n:,}", max(n, of(100_000)), connections=n) for n in (1, 10, 100, 500, 2000)]
    points += [Point("streams", f"{n:,}", max(n, of(100_000)), streams=n) for n in (1, 10, 100, 1000)]
    for label, size in (("10 B", 10), ("100 B", 100), ("1 KiB", 1 << 10), ("10 KiB", 10 << 10), ("100 KiB", 100 << 10), ("1 MiB", 1 << 20),
                        ("16 MiB", 16 << 20), ("64 MiB", 64 << 20)):
        # Streams of a thousand messages at most: a frame each, and up to half a GB or 300,000 messages.
        messages = min(1000, max(1, (64 << 20) // size))
        points.append(Point("message", label, max(1, min(of(300_000) // messages, of(512 << 20) // (messages * size))),
                            message_bytes=size, messages=messages))
    return points


class Growth:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.client_cpus, server_cpus, self.middle_cpus = harness.cpu_sets()
        (folder / "chain").write_bytes(compact_blocks.answer(1, 16 << 20)[0])
        self.server, self.server_port = contestants.start_server(options.server, folder / "chain", server_cpus, ["--framing", "go"])

    def proxy(self):
        return contestants.Ztape(self.options.ztape, self.server_port, TMPFS / f"ztape-bench-{os.getpid()}.ztape", self.middle_cpus,
                                 ["--when-disk-is-slow", "hold", "--queue-bytes", f"{QUEUE_MB}M", *self.options.ztape_option])

    def haproxy(self):
        return contestants.Haproxy(self.server_port, self.folder, self.middle_cpus, (16384, ""))

    def measure(self, point, name):
        middle = self.proxy() if name == "ztape" else self.haproxy()
        try:
            before = middle.relay.running_cpu_seconds()
            done = load.run(middle.port, "Sized", point.requests, connections=point.connections, streams=point.streams,
                            cpus=self.client_cpus, options=[f"-Hx-bytes: {point.message_bytes}", f"-Hx-messages: {point.messages}"])
            middle.finish()
            if middle.lost_bytes:
                raise BenchError(f"{point.sweep} {point.label}: the recorder lost {middle.lost_bytes:,} bytes")
            point.bytes = done.bytes
            point.runs[name].append((middle.cpu_seconds["relay"] - before, middle.rss_mb["relay"]))
        finally:
            middle.kill()

    def idle(self, count):
        """(RSS in MB, CPU seconds a second) with so many connections that have greeted and are silent."""
        middle = self.proxy()
        sockets = []
        try:
            for _ in range(count):
                sockets.append(socket.create_connection(("127.0.0.1", middle.port)))
                sockets[-1].sendall(PREFACE)
            for one in sockets:
                one.recv(9)  # the server's SETTINGS: the connection stands on both sides
            before, began = middle.relay.running_cpu_seconds(), time.monotonic()
            time.sleep(1.5)
            used = (middle.relay.running_cpu_seconds() - before) / (time.monotonic() - began)
            return middle.relay.peak_resident_mb(), used
        finally:
            for one in sockets:
                one.close()
            middle.kill()


def rise(points, name):
    """How many times what a call costs at the last of these is the least that it costs at any of them; not under 1."""
    return points[-1].cpu(name) / points[-1].requests / min(p.cpu(name) / p.requests for p in points)


def report(page, points, idle):
    messages = [p for p in points if p.sweep == "message"]
    lowest = min(p.rss() for p in points)

    def marks(point, against):
        found = (["CPU"] if against > NOT_FLAT else []) + (["RSS"] if point.rss() > point.allowed_rss(lowest) else [])
        return ", ".join(found) or "-"

    for sweep in ("connections", "streams"):
        here = [p for p in points if p.sweep == sweep]
        page.heading(f"{sweep}: {here[0].requests:,} calls of 1 KB in all")
        page.table([[sweep, "CPU us/call", "haproxy's", "/ haproxy's", "RSS MB", "haproxy's", "not flat"]] + [
            [p.label, f"{p.cpu() / p.requests * 1e6:.1f}", f"{p.cpu('haproxy') / p.requests * 1e6:.1f}", f"{p.cpu() / p.cpu('haproxy'):.2f}",
             f"{p.rss():.1f}", f"{p.rss('haproxy'):.1f}", marks(p, rise(here[:i + 1], "ztape") / rise(here[:i + 1], "haproxy"))] for i, p in enumerate(here)])
    a, b = fit([(p.frames, p.bytes, p.cpu()) for p in messages])
    page.heading(f"messages, a DATA frame each (or one for 16 KiB): {a * 1e6:.2f} us a frame and {b * 1e9:.2f} s a GB, fitted")
    page.table([["message", "calls", "frames", "MB", "CPU us/frame", "CPU s/GB", "CPU / fitted", "RSS MB", "not flat"]] + [
        [p.label, f"{p.requests:,}", f"{p.frames:,}", f"{p.bytes / 1e6:,.0f}", f"{p.cpu() / p.frames * 1e6:.2f}",
         harness.significant(p.cpu() / (p.bytes / 1e9)), f"{p.cpu() / (a * p.frames + b * p.bytes):.2f}", f"{p.rss():.1f}",
         marks(p, p.cpu() / (a * p.frames + b * p.bytes))] for p in messages])
    page.heading("connections that have greeted and are silent")
    base = idle[0]
    page.table([["connections", "RSS MB", "KB a connection more", "CPU"]] + [
        [f"{count:,}", f"{rss:.1f}", f"{(rss - base[1]) * 1024 / (count - base[0]):.1f}" if count > base[0] else "-", f"{cpu:.1%}"]
        for count, rss, cpu in idle])
    return a, b


INTRODUCTION = f"""
# How the recorder grows

Made by `./dev bench growth --markdown docs/growth.md`: `ztape proxy` records to tmpfs, its queue {QUEUE_MB} MB, and loses nothing. CPU is that of the whole process with the recorder's thread.

{__doc__.split(chr(10) * 2, 1)[1].strip()} RSS is not flat where it is above {NOT_FLAT} times the least, the queue, and {KB_A_CONNECTION} KB a connection.
"""


def main():
    parser = argparse.ArgumentParser(prog="./dev bench growth", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ztape", default="build/release/ztape", metavar="FILE")
    parser.add_argument("--programs", default="build/release/bench", metavar="DIR", help="where block_server is")
    parser.add_argument("--ztape-option", action="append", default=[], metavar="OPTION", help="given to ztape proxy; repeatable")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="each load runs so often; the median counts")
    parser.add_argument("--scale", type=float, default=1.0, metavar="X", help="multiplies the calls of every load")
    parser.add_argument("--json", metavar="FILE", help="every figure")
    parser.add_argument("--markdown", metavar="FILE", help="what is printed, as a page")
    options = parser.parse_args()
    options.ztape, options.server = os.path.abspath(options.ztape), os.path.join(os.path.abspath(options.programs), "block_server")
    page = harness.Page()
    environment = harness.environment([[options.ztape, "--version"], ["haproxy", "-v"], ["h2load", "--version"]])
    page.facts(environment)
    points = plan(options.scale)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        growth = Growth(options, pathlib.Path(folder))
        try:
            for number in range(options.rounds):
                print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
                for point in points if number % 2 == 0 else reversed(points):
                    for name in ("ztape", "haproxy") if point.sweep != "message" else ("ztape",):
                        growth.measure(point, name)
            idle = [(count, *growth.idle(count)) for count in (1, 100, 1000, 2000)]
        finally:
            growth.server.stop(signal.SIGKILL)
    a, b = report(page, points, idle)
    if options.markdown:
        page.write(options.markdown, INTRODUCTION)
    if options.json:
        document = {"environment": environment, "us_a_frame": a * 1e6, "s_a_gb": b * 1e9, "points": [vars(p) for p in points],
                    "idle": [{"connections": c, "rss_mb": rss, "cpu": cpu} for c, rss, cpu in idle]}
        harness.write_json(options.json, document)
    return 0


if __name__ == "__main__":
    harness.exit_with(main)
