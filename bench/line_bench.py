#!/usr/bin/python3
"""./dev bench line: how much the proxy changes what it records.

A wallet and an indexer in network namespaces of their own, between them a line with a round-trip time (TUN devices, MTU
1500, no loss, no limit of the rate). h2load is the wallet, with the HTTP/2 windows of two families of clients; direct, and
through `ztape proxy` that records, beside the indexer or beside the wallet. Alternating; latencies of all rounds together.
Needs root.
"""

import argparse
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

import compact_blocks
import contestants
import harness
import load
from harness import BenchError, Process

RTTS_MS = (0, 20, 80)
WALLET, INDEXER = "10.99.0.1", "10.99.0.2"
PARTS = 64  # of a chain of 64 MiB: 1 MiB an answer
# h2load takes windows as powers of 2, less 1: what the client lets a stream and a connection have under way.
CLIENTS = {"tonic, 2 MiB": ["-w21", "-W22"], "Android, 64 KiB": ["-w16", "-W16"]}
PLACES = ("direct", "beside the indexer", "beside the wallet")


class Space:
    """A network namespace, which lives as long as a process in it."""

    def __init__(self):
        self.holder = Process(["unshare", "-n", "sh", "-c", "echo ready; exec sleep infinity"])
        if self.holder.first_line() != "ready":
            raise BenchError("no network namespace could be made")
        self.prefix = ["nsenter", "-t", str(self.holder.child.pid), "-n", "--"]
        self.run("ip", "link", "set", "lo", "up")
        # What one run learnt about the line must not help the next one.
        self.run("sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1")

    def run(self, *command):
        harness.run([*self.prefix, *command])

    def close(self):
        self.holder.stop(signal.SIGKILL)


class Line:
    def __init__(self, program, wallet, indexer, rtt_ms, cpus):
        self.process = Process([program, str(wallet.holder.child.pid), str(indexer.holder.child.pid), str(rtt_ms * 1000)], cpus)
        if self.process.first_line() != "ready":
            raise BenchError("delay_line did not start")
        for space, own, other in ((wallet, WALLET, INDEXER), (indexer, INDEXER, WALLET)):
            space.run("ip", "addr", "add", own, "peer", other, "dev", "line")
            space.run("ip", "link", "set", "line", "mtu", "1500", "txqueuelen", "10000", "up")

    def close(self):
        self.process.stop(signal.SIGKILL)


class Cell:
    """One client at one RTT through one place."""

    def __init__(self):
        self.latencies_us, self.bytes_per_second, self.requests_per_second = [], [], []

    def add(self, done, requests):
        self.latencies_us += done.latencies_us
        self.bytes_per_second.append(done.bytes / done.seconds)
        self.requests_per_second.append(requests / done.seconds)

    def quantile(self, share):
        ordered = sorted(self.latencies_us)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def calls(kind, client, rtt_ms):
    """How many: a few seconds at most."""
    if kind == "unary":
        return 3000 if rtt_ms == 0 else max(25, 1000 // rtt_ms)
    trips = 1 + (1 << 20) // (65_535 if "64 KiB" in client else 1 << 21)
    return 60 if rtt_ms == 0 else max(2, 1200 // (rtt_ms * trips))


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.client_cpus, self.server_cpus, self.middle_cpus = harness.cpu_sets()
        self.wallet, self.indexer = Space(), Space()
        (folder / "chain").write_bytes(compact_blocks.answer(1, 64 << 20)[0])
        self.server, self.server_port = contestants.start_server(
            os.path.join(options.programs, "block_server"), folder / "chain", self.server_cpus, ["--listen", "0.0.0.0:0"], self.indexer.prefix)
        self.cells = {}
        self.captures = 0

    def close(self):
        self.server.stop(signal.SIGKILL)
        self.wallet.close()
        self.indexer.close()

    def proxy(self, place):
        capture = self.folder / "line.ztape"
        if place == "beside the indexer":
            return INDEXER, contestants.Ztape(self.options.ztape, self.server_port, capture, self.middle_cpus, self.options.ztape_option,
                                              f"{INDEXER}:0", prefix=self.indexer.prefix)
        return "127.0.0.1", contestants.Ztape(self.options.ztape, self.server_port, capture, self.middle_cpus, self.options.ztape_option,
                                              upstream_host=INDEXER, prefix=self.wallet.prefix)

    def measure(self, kind, client, rtt_ms, place):
        requests = calls(kind, client, rtt_ms)
        host, middle = (INDEXER, contestants.Middle(self.server_port)) if place == "direct" else self.proxy(place)
        try:
            done = load.run(middle.port, "GetBlock" if kind == "unary" else "GetBlockRange", requests, cpus=self.client_cpus, host=host,
                            options=[*CLIENTS[client], *([f"-Hx-parts: {PARTS}"] if kind == "stream" else [])],
                            log=self.folder / "h2load.log", prefix=self.wallet.prefix)
            if middle.recorder:
                middle.finish()
                if middle.lost_bytes:
                    raise BenchError(f"the recorder lost {middle.lost_bytes:,} bytes at RTT {rtt_ms} ms")
                harness.run([self.options.ztape, "verify", "-r", str(middle.capture)])
                self.captures += 1
        finally:
            middle.kill()
        self.cells.setdefault((kind, client, rtt_ms, place), Cell()).add(done, requests)

    def round(self, number):
        for rtt_ms in RTTS_MS:
            line = Line(os.path.join(self.options.programs, "delay_line"), self.wallet, self.indexer, rtt_ms, self.middle_cpus)
            try:
                for kind in ("unary", "stream"):
                    for client in CLIENTS:
                        for place in PLACES if number % 2 == 0 else reversed(PLACES):
                            self.measure(kind, client, rtt_ms, place)
            finally:
                line.close()


def report(page, cells):
    def milliseconds(microseconds):
        return f"{microseconds / 1000:.3f}" if microseconds < 10_000 else f"{microseconds / 1000:.1f}"

    for kind, title, field, unit in (("unary", "unary calls of 1 KB, one after another", "requests_per_second", "calls/s"),
                                     ("stream", "streams of 1 MiB, one after another", "bytes_per_second", "MB/s")):
        page.heading(title)
        scale = 1e-6 if kind == "stream" else 1.0
        rows = [["client's windows", "RTT ms", "proxy", "calls", "p50 ms", "p95 ms", "p50 added ms", unit, "/ direct"]]
        for client in CLIENTS:
            for rtt_ms in RTTS_MS:
                direct = cells[kind, client, rtt_ms, "direct"]
                for place in PLACES:
                    cell = cells[kind, client, rtt_ms, place]
                    rates = getattr(cell, field)
                    ratio = harness.median_interval([a / b for a, b in zip(rates, getattr(direct, field))])
                    rows.append([client, str(rtt_ms), place, f"{len(cell.latencies_us):,}", milliseconds(cell.quantile(.5)), milliseconds(cell.quantile(.95)),
                                 "-" if place == "direct" else f"{(cell.quantile(.5) - direct.quantile(.5)) / 1000:.3f}",
                                 harness.significant(statistics.median(rates) * scale), "-" if place == "direct" else harness.cell(ratio)])
        page.table(rows)


INTRODUCTION = f"""
# How much the proxy changes what it records

Made by `./dev bench line --markdown docs/proxy-effect.md`. {' '.join(__doc__.split(chr(10) * 2, 1)[1].split()).removesuffix(' Needs root.')}
"""


def main():
    parser = argparse.ArgumentParser(prog="./dev bench line", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ztape", default="build/release/ztape", metavar="FILE")
    parser.add_argument("--programs", default="build/release/bench", metavar="DIR", help="where block_server and delay_line are")
    parser.add_argument("--ztape-option", action="append", default=[], metavar="OPTION", help="given to ztape proxy; repeatable")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--json", metavar="FILE", help="every figure")
    parser.add_argument("--markdown", metavar="FILE", help="what is printed, as a page")
    options = parser.parse_args()
    if subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode != 0 or not os.path.exists("/dev/net/tun"):
        parser.error("needs root, network namespaces and /dev/net/tun")
    options.ztape, options.programs = os.path.abspath(options.ztape), os.path.abspath(options.programs)
    page = harness.Page()
    environment = harness.environment([[options.ztape, "--version"], ["h2load", "--version"]])
    page.facts(environment)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        bench = Bench(options, pathlib.Path(folder))
        try:
            for number in range(options.rounds):
                print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
                bench.round(number)
        finally:
            bench.close()
    report(page, bench.cells)
    page.line(f"{options.rounds} rounds; {bench.captures} captures, all verified, nothing lost")
    if options.markdown:
        page.write(options.markdown, INTRODUCTION)
    if options.json:
        document = {"environment": environment, "rounds": options.rounds,
                    "cells": [dict(zip(("kind", "client", "rtt_ms", "place"), key)) | vars(cell) for key, cell in bench.cells.items()]}
        harness.write_json(options.json, document)
    return 0


if __name__ == "__main__":
    harness.exit_with(main)
