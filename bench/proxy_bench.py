#!/usr/bin/python3
"""./dev bench proxy: what a relay in the path costs. h2load against nghttpd (h2c), direct, through haproxy in TCP mode,
and through `ztape proxy` that records. One run, the contestants one after another in alternating order; medians with
95 % intervals; ratios are of the same round.

The answers are gRPC messages of compact-block-like bytes (random 32-byte fields), so that the recorder has real work.
haproxy runs with one thread and with whichever of several buffer sizes and splice settings is its best for each
workload, found at the start of every run.
"""

import argparse
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import struct
import sys
import tempfile
import time

import harness
from harness import BenchError, Process

SERVICE = "cash.z.wallet.sdk.rpc.CompactTxStreamer"
SMALL_BYTES = 1000
BULK_BYTES = 64 << 20
BULK_MESSAGE_BYTES = 32 << 10
TMPFS = pathlib.Path("/dev/shm")


def message(numbers, length):
    """A gRPC message of tagged random 32-byte fields: it compresses about as little as compact blocks do."""
    body = bytearray()
    while len(body) < length:
        body += b"\x0a\x20" + numbers.randbytes(32)
    return struct.pack(">BI", 0, length) + bytes(body[:length])


class Workload:
    def __init__(self, name, path, requests, response_bytes, connections=1, streams=1, log=False):
        self.name, self.path, self.requests, self.response_bytes = name, path, requests, response_bytes
        self.connections, self.streams, self.log = connections, streams, log


class Outcome:
    """What one run of h2load through one contestant gave. cpu and rss are the middle process's."""

    def __init__(self, seconds, workload):
        self.requests_per_second = workload.requests / seconds
        self.bytes_per_second = workload.requests * workload.response_bytes / seconds
        self.p50_us = self.cpu_seconds_per_gb = self.cpu_us_per_request = self.rss_mb = None
        self.lost_bytes = None
        self.foreign_share = 0.0


def seconds_of(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s|m|h)", text).groups()
    return float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}[unit]


def lost_bytes(status, page, errors):
    """Out of the summary: "lost: nothing", "lost: 12 chunks with 345,678 bytes, ..."."""
    if re.search(r"^lost: nothing$", page, re.MULTILINE):
        return 0
    lost = re.search(r"^lost: .*? with ([\d,]+) byte", page, re.MULTILINE)
    if not lost:
        raise BenchError(f"ztape proxy ended with {status} and no account of what it lost: {errors.strip()}")
    return int(lost.group(1).replace(",", ""))


def lost_text(outcomes, workload):
    lost = [outcome.lost_bytes for outcome in outcomes if outcome.lost_bytes is not None]
    if not any(lost):
        return "0" if lost else "-"
    whole = workload.requests * workload.response_bytes
    runs = sum(1 for count in lost if count)
    return f"in {runs} of {len(lost)} runs, at most {max(lost) / whole:.1%} of the bytes"


class Contest:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.client_cpus, self.server_cpus, self.middle_cpus = harness.cpu_sets()
        self.haproxy_best = {}
        self.start_server()

    def start_server(self):
        root = self.folder / "htdocs" / SERVICE
        root.mkdir(parents=True)
        numbers = random.Random(7)
        (root / "GetBlock").write_bytes(message(numbers, SMALL_BYTES))
        one = [message(numbers, BULK_MESSAGE_BYTES - 5) for _ in range(256)]
        (root / "GetBlockRange").write_bytes(b"".join(one) * (BULK_BYTES // (256 * BULK_MESSAGE_BYTES)))
        self.server_port = harness.free_port()
        self.server = Process(["nghttpd", "--no-tls", "-d", str(root.parent), str(self.server_port)], self.server_cpus,
                              stdout=open(os.devnull, "w"))
        harness.wait_for_listener(self.server_port, self.server)

    def close(self):
        self.server.stop(signal.SIGKILL)

    # A contestant: starts what stands in the middle; (port, process or None, file it records to or None).
    def direct(self, _workload):
        return self.server_port, None, None

    def haproxy(self, workload):
        return self.start_haproxy(*self.haproxy_best.get(workload.name, (16384, "")))

    def start_haproxy(self, buffer_bytes, splice):
        port = harness.free_port()
        config = self.folder / "haproxy.cfg"
        config.write_text(
            f"global\n  nbthread 1\n  maxconn 1000\n  tune.bufsize {buffer_bytes}\n  tune.pipesize 1048576\n"
            "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n"
            f"  {splice and 'option ' + splice}\n"
            f"listen relay\n  bind 127.0.0.1:{port}\n  server s 127.0.0.1:{self.server_port}\n")
        process = Process(["haproxy", "-db", "-q", "-f", str(config)], self.middle_cpus)
        harness.wait_for_listener(port, process)
        return port, process, None

    def ztape(self, capture, *more):
        process = Process([self.options.ztape, "proxy", "--listen", "127.0.0.1:0", "--upstream",
                           f"http://127.0.0.1:{self.server_port}", "-w", str(capture), "--force", *self.options.ztape_option,
                           *more],
                          self.middle_cpus)
        port = int(re.match(r"listening on [^ ]*:(\d+),", process.first_line()).group(1))
        return port, process, capture

    def ztape_file(self, _workload):
        return self.ztape(self.folder / "bench.ztape")

    def ztape_file_hold(self, _workload):
        return self.ztape(self.folder / "bench.ztape", "--when-disk-is-slow", "hold")

    def ztape_tmpfs(self, _workload):
        return self.ztape(TMPFS / f"ztape-bench-{os.getpid()}.ztape")

    def measure(self, start, workload, verify=False):
        port, middle, capture = start(workload)
        try:
            return self.measure_running(port, middle, capture, workload, verify)
        finally:
            if middle:
                middle.stop(signal.SIGKILL)
            if capture:
                capture.unlink(missing_ok=True)

    def measure_running(self, port, middle, capture, workload, verify):
        log = self.folder / "h2load.log"
        log.unlink(missing_ok=True)
        command = ["h2load", "-t1", f"-c{workload.connections}", f"-m{workload.streams}", f"-n{workload.requests}",
                   *([f"--log-file={log}"] if workload.log else []),
                   f"http://127.0.0.1:{port}/{SERVICE}/{workload.path}"]
        server_before, busy_before = self.server.running_cpu_seconds(), harness.busy_seconds()
        began = time.monotonic()
        started_cpu = middle.running_cpu_seconds() if middle else 0.0
        out, client_cpu = harness.run(command, self.client_cpus)
        if f" {workload.requests} succeeded, 0 failed" not in out:
            raise BenchError(f"not every request succeeded:\n{out}")
        seconds = seconds_of(re.search(r"finished in ([\d.]+\w+)", out).group(1))
        outcome = Outcome(seconds, workload)
        if workload.log:
            outcome.p50_us = statistics.median(int(line.split("\t")[2]) for line in log.read_text().splitlines())
        ours = client_cpu + self.server.running_cpu_seconds() - server_before
        if middle:
            outcome.rss_mb = middle.peak_resident_mb()
            # A recorder's cost includes what it writes after the last byte was relayed: its whole life counts.
            status, page, errors = middle.stop(signal.SIGINT if capture else signal.SIGTERM)
            ours += middle.cpu_seconds - started_cpu
            outcome.cpu_us_per_request = middle.cpu_seconds / workload.requests * 1e6
            outcome.cpu_seconds_per_gb = middle.cpu_seconds / (workload.requests * workload.response_bytes / 1e9)
            if capture:
                outcome.lost_bytes = lost_bytes(status, page, errors)
        outcome.foreign_share = max(0.0, harness.busy_seconds() - busy_before - ours) / (time.monotonic() - began)
        if capture and verify and not outcome.lost_bytes:
            harness.run([self.options.ztape, "verify", "-r", str(capture)])
        return outcome

    def choose_haproxy(self, workload):
        """The setting that does most in a short trial of this workload, twice each."""
        trial = Workload(workload.name, workload.path, max(1, workload.requests // 4), workload.response_bytes,
                         workload.connections, workload.streams)
        rates = {}
        for _ in range(2):
            for buffer_bytes in (16384, 65536, 262144):
                for splice in ("", "splice-auto"):
                    outcome = self.measure(lambda _w, b=buffer_bytes, s=splice: self.start_haproxy(b, s), trial)
                    key = (buffer_bytes, splice)
                    rates[key] = max(rates.get(key, 0), outcome.requests_per_second)
        best = max(rates, key=rates.get)
        self.haproxy_best[workload.name] = best
        print(f"haproxy's best      {workload.name}: bufsize {best[0]}, {best[1] or 'no splice'}", flush=True)


def column(outcomes, field):
    return [getattr(outcome, field) for outcome in outcomes]


def ratios(outcomes, base, field):
    return [a / b for a, b in zip(column(outcomes, field), column(base, field)) if a is not None and b]


def report(results, workloads, names):
    """results[workload][contestant]: the outcomes, one a round."""
    def show(values, scale=1.0):
        return harness.cell(harness.median_interval([value * scale for value in values if value is not None]))

    for workload in workloads:
        rows = results[workload.name]
        bulk = workload.path == "GetBlockRange"
        rate, scale = ("bytes_per_second", 1e-6) if bulk else ("requests_per_second", 1.0)
        head = ["through", "MB/s" if bulk else "requests/s", "ratio to direct", "ratio to haproxy"]
        head += ["CPU s/GB" if bulk else "CPU us/request", "ratio to haproxy", "RSS MB"]
        if workload.log:
            head += ["p50 us", "added us"]
        table = [head + ["lost"]]
        for name in names:
            outcomes = rows[name]
            cpu = "cpu_seconds_per_gb" if bulk else "cpu_us_per_request"
            row = [name, show(column(outcomes, rate), scale), show(ratios(outcomes, rows["direct"], rate)),
                   show(ratios(outcomes, rows["haproxy"], rate)), show(column(outcomes, cpu)),
                   show(ratios(outcomes, rows["haproxy"], cpu)), show(column(outcomes, "rss_mb"))]
            if workload.log:
                added = [a.p50_us - b.p50_us for a, b in zip(outcomes, rows["direct"])]
                row += [show(column(outcomes, "p50_us")), "-" if name == "direct" else show(added)]
            table.append(row + [lost_text(outcomes, workload)])
        print(f"\n{workload.name}: {workload.requests:,} requests of {workload.response_bytes:,} bytes, "
              f"{workload.connections} connection(s), {workload.streams} stream(s) each")
        harness.print_table(table)
    everything = [o for rows in results.values() for outcomes in rows.values() for o in outcomes]
    foreign = statistics.median(o.foreign_share for o in everything)
    print(f"\nother processes used {foreign:.2f} CPUs (median) while a run was on; load average now "
          + " ".join(f"{load:.2f}" for load in os.getloadavg()))
    if foreign > 0.2:
        print("The machine was busy with something else: compare ratios, and repeat on a quiet one.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ztape", default="build/release/ztape", metavar="FILE")
    parser.add_argument("--pairs", type=int, default=10, metavar="N", help="rounds; every contestant runs once in each")
    parser.add_argument("--scale", type=float, default=1.0, metavar="X", help="multiplies the requests of every run")
    parser.add_argument("--dir", default="build", metavar="DIR", help="on the disk to record to")
    parser.add_argument("--workload", action="append", choices=["one stream", "many streams", "bulk"])
    parser.add_argument("--ztape-option", action="append", default=[], metavar="OPTION", help="given to ztape proxy; repeatable")
    parser.add_argument("--without-ztape", action="store_true", help="only the neighbours")
    options = parser.parse_args()
    if options.pairs < 1 or options.scale <= 0:
        parser.error("--pairs and --scale must be above 0")
    for program in ("h2load", "nghttpd", "haproxy", "taskset"):
        if not shutil.which(program):
            parser.error(f"{program} is not installed (./dev deps)")
    os.makedirs(options.dir, exist_ok=True)
    options.ztape = os.path.abspath(options.ztape)

    def of(count):
        return max(1, int(count * options.scale))

    workloads = [Workload("one stream", "GetBlock", of(50_000), SMALL_BYTES + 5, log=True),
                 Workload("many streams", "GetBlock", of(300_000), SMALL_BYTES + 5, connections=8, streams=16),
                 Workload("bulk", "GetBlockRange", of(32), BULK_BYTES)]
    workloads = [w for w in workloads if not options.workload or w.name in options.workload]

    harness.print_environment([[options.ztape, "--version"], ["haproxy", "-v"], ["h2load", "--version"], ["nghttpd", "--version"]])
    print(f"load average        {' '.join(f'{load:.2f}' for load in os.getloadavg())}")
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.dir) as folder:
        contest = Contest(options, pathlib.Path(folder))
        print(f"CPUs of             client {contest.client_cpus}, server {contest.server_cpus}, between {contest.middle_cpus}")
        contestants = {"direct": contest.direct, "haproxy": contest.haproxy}
        if not options.without_ztape:
            contestants["ztape, file"] = contest.ztape_file
            contestants["ztape, file, hold"] = contest.ztape_file_hold
            if TMPFS.is_dir():
                contestants["ztape, tmpfs"] = contest.ztape_tmpfs
        results = {w.name: {name: [] for name in contestants} for w in workloads}
        try:
            for workload in workloads:
                contest.choose_haproxy(workload)
            for number in range(options.pairs):
                print(f"round {number + 1} of {options.pairs}", file=sys.stderr, flush=True)
                order = list(contestants) if number % 2 == 0 else list(reversed(contestants))
                for workload in workloads:
                    for name in order:
                        outcome = contest.measure(contestants[name], workload, verify=number == 0)
                        results[workload.name][name].append(outcome)
        finally:
            contest.close()
        report(results, workloads, list(contestants))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"bench: {error}")
