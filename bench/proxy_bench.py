#!/usr/bin/python3
"""./dev bench proxy: what the recorder costs, beside the best of its neighbours. h2load against a server of compact blocks
(h2c): direct, through haproxy in TCP mode (which records nothing), through `ztape proxy` that records, and with `tcpdump -w` beside it.

One run, the contestants one after another in alternating order; medians with 95 % intervals; ratios are of the same
round. README.md beside this file says how each contestant is set up and what each row means.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import sys
import tempfile
import time

import compact_blocks
import contestants
import disk
import harness
import load
from harness import BenchError, Process
from rows import Row, ratios, table

BULK_BYTES = 64 << 20
SLOW_DISK_BYTES_PER_SECOND = 100e6
LOSSLESS = "ztape, file, hold"
TMPFS = pathlib.Path("/dev/shm")
RINGS_KIB = [8192 << step for step in range(8)]  # up to 1 GiB; the default of 2 MiB drops most of such traffic


class Workload:
    def __init__(self, name, path, requests, connections=1, streams=1, latencies=False, chains=None, h2load=()):
        self.name, self.path, self.requests, self.connections, self.streams = name, path, requests, connections, streams
        self.latencies, self.chains, self.h2load = latencies, chains, h2load  # chains: how often the whole of it is sent


class Outcome:
    """What one run of h2load through one arrangement gave."""

    def __init__(self):
        self.requests_per_second = self.bytes_per_second = self.p50_us = None
        self.received_bytes = self.gigabytes = 0
        self.relay_cpu = self.recorder_cpu = self.all_cpu = None  # seconds a GB of answers; both ends are in all_cpu
        self.cpu_us_per_request = None
        self.rss_mb = self.lost_bytes = self.kernel_drops = self.size_ratio = None
        self.foreign_share = 0.0


class Contest:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.client_cpus, self.server_cpus, self.middle_cpus = harness.cpu_sets()
        self.haproxy_best = {}
        self.ring_kib = RINGS_KIB[2 if options.quick else 0]
        self.ring_retries = 0
        self.checked = {"captures": 0, "bytes": 0}
        self.start_server()

    def start_server(self):
        answer, self.random_bytes = compact_blocks.answer(1, BULK_BYTES)
        self.answer_bytes = len(answer)
        (self.folder / "chain").write_bytes(answer)
        self.server, self.server_port = contestants.start_server(self.options.server, self.folder / "chain", self.server_cpus)

    def close(self):
        self.server.stop(signal.SIGKILL)

    # What stands in the path or beside it.
    def direct(self, _workload):
        return contestants.Middle(self.server_port)

    def haproxy(self, workload):
        return contestants.Haproxy(self.server_port, self.folder, self.middle_cpus, *self.haproxy_best.get(workload.name, [(16384, "")]))

    def nginx(self, _workload):
        return contestants.Nginx(self.server_port, self.folder, self.middle_cpus)

    def socat(self, _workload):
        return contestants.Socat(self.server_port, self.middle_cpus)

    def ztape(self, capture, *more):
        return contestants.Ztape(self.options.ztape, self.server_port, capture, self.middle_cpus, [*self.options.ztape_option, *more])

    def ztape_file(self, _workload):
        return self.ztape(self.folder / "bench.ztape")

    def ztape_file_hold(self, _workload):
        return self.ztape(self.folder / "bench.ztape", "--when-disk-is-slow", "hold")

    def ztape_tmpfs_hold(self, _workload):
        return self.ztape(TMPFS / f"ztape-bench-{os.getpid()}.ztape", "--when-disk-is-slow", "hold")

    def tcpdump(self, workload):
        return contestants.Tcpdump(self.direct(workload), self.folder / "bench.pcap", self.middle_cpus, self.ring_kib)

    def haproxy_tcpdump(self, workload):
        return contestants.Tcpdump(self.haproxy(workload), self.folder / "bench.pcap", self.middle_cpus, self.ring_kib)

    def into_slow_disk(self, start):
        def started(_workload):
            pipe = self.folder / "slow.pipe"
            sink = contestants.SlowSink(pipe, SLOW_DISK_BYTES_PER_SECOND)
            middle = start(pipe)
            middle.sink = sink
            return middle
        return started

    def ztape_slow(self, workload):
        return self.into_slow_disk(lambda pipe: self.ztape(pipe))(workload)

    def ztape_slow_hold(self, workload):
        return self.into_slow_disk(lambda pipe: self.ztape(pipe, "--when-disk-is-slow", "hold"))(workload)

    def tcpdump_slow(self, workload, ring_kib=None):
        return self.into_slow_disk(lambda pipe: contestants.Tcpdump(self.direct(None), pipe, self.middle_cpus, ring_kib or self.ring_kib))(workload)

    def tcpdump_slow_64(self, workload):
        return self.tcpdump_slow(workload, 65536)

    def measure(self, start, workload, check=False, lossless=False):
        """A tcpdump that must lose nothing is run again with twice the ring until it does."""
        while True:
            middle = start(workload)
            try:
                outcome = self.measure_running(middle, workload, check)
            finally:
                middle.kill()
            if not (lossless and outcome.kernel_drops):
                return outcome
            larger = [size for size in RINGS_KIB if size > self.ring_kib]
            if not larger:
                raise BenchError(f"tcpdump drops {outcome.kernel_drops} packets even with a ring of {self.ring_kib >> 10} MiB")
            self.ring_kib = larger[0]
            self.ring_retries += 1

    def measure_running(self, middle, workload, check):
        server_before, busy_before, began = self.server.running_cpu_seconds(), harness.busy_seconds(), time.monotonic()
        started_cpu = sum(process.running_cpu_seconds() for process in set(middle.processes().values()))
        done = load.run(middle.port, workload.path, workload.requests, connections=workload.connections, streams=workload.streams,
                        cpus=self.client_cpus, options=workload.h2load, log=self.folder / "h2load.log" if workload.latencies else None)
        outcome = Outcome()
        outcome.received_bytes, outcome.gigabytes = done.bytes, done.bytes / 1e9
        outcome.requests_per_second, outcome.bytes_per_second = workload.requests / done.seconds, done.bytes / done.seconds
        outcome.p50_us = done.p50_us() if workload.latencies else None
        ends_cpu = done.cpu_seconds + self.server.running_cpu_seconds() - server_before
        middle.finish()  # a recorder's cost includes what it writes after the last byte was relayed
        processes = set(middle.processes().values())
        middle_cpu = sum(process.cpu_seconds for process in processes)
        outcome.all_cpu = (ends_cpu + middle_cpu) / outcome.gigabytes
        outcome.cpu_us_per_request = middle_cpu / workload.requests * 1e6
        outcome.relay_cpu, outcome.recorder_cpu = (
            middle.cpu_seconds[role] / outcome.gigabytes if role in middle.cpu_seconds else None for role in ("relay", "recorder"))
        outcome.rss_mb = middle.rss_mb.get("recorder", middle.rss_mb.get("relay"))
        outcome.lost_bytes, outcome.kernel_drops = middle.lost_bytes, middle.kernel_drops
        outcome.foreign_share = max(0.0, harness.busy_seconds() - busy_before - ends_cpu - middle_cpu + started_cpu) / (time.monotonic() - began)
        if middle.capture and not middle.sink:
            if workload.chains:
                outcome.size_ratio = middle.capture.stat().st_size / (self.random_bytes * workload.chains)
            if check and not outcome.lost_bytes and not outcome.kernel_drops:
                self.check_capture(middle, outcome)
        return outcome

    def check_capture(self, middle, outcome):
        """Every byte the client received is in the capture, and the capture is whole."""
        if isinstance(middle, contestants.Tcpdump):
            held = contestants.captured_stream_bytes(middle.capture, middle.port)
        else:
            harness.run([self.options.ztape, "verify", "-r", str(middle.capture)])
            out, _ = harness.run([self.options.ztape, "show", "-r", str(middle.capture), "--json"])
            page = json.loads(out)
            held = sum(c["server_to_client_bytes"] - c["gap_bytes"] - c["missing_bytes"] for c in page["connections"])
        # h2load closes with what it has; a GOAWAY may still have been under way.
        if not 0 <= held - outcome.received_bytes <= 1000:
            raise BenchError(f"{middle.capture.name} holds {held:,} bytes, the client received {outcome.received_bytes:,}")
        self.checked["captures"] += 1
        self.checked["bytes"] += held

    def choose_haproxy(self, workload):
        """The setting that does most in a short trial of this workload; the best of two trials each."""
        trial = Workload(workload.name, workload.path, max(1, workload.requests // (2 if self.options.quick else 4)),
                         workload.connections, workload.streams)
        threads = (1, 2) if workload.connections > 1 else (1,)
        buffers = (262144,) if self.options.quick else (16384, 65536, 262144, 1048576)
        rates = {}
        for _ in range(1 if self.options.quick else 2):
            for setting in [((size, splice), count) for size in buffers for splice in ("", "splice-auto") for count in threads]:
                outcome = self.measure(lambda _w, s=setting: contestants.Haproxy(self.server_port, self.folder, self.middle_cpus, *s), trial)
                rates[setting] = max(rates.get(setting, 0), outcome.requests_per_second)
        best = max(rates, key=rates.get)
        self.haproxy_best[workload.name] = best
        (size, splice), count = best
        return f"bufsize {size}, {splice or 'no splice'}, {count} thread(s)"


def column(outcomes, field):
    return [getattr(outcome, field) for outcome in outcomes]


def added(outcomes, direct):
    return [a.p50_us - b.p50_us for a, b in zip(outcomes, direct)]


def disk_note(disks, rate):
    """"disk-bound" where the capture grows as fast as the disk takes bytes by itself, or nearly."""
    seen = max(r[0] for r in disks.values() if r)
    text = ", ".join(f"{how} {r[0] / 1e6:,.0f} ({r[1] / 1e6:,.0f} to the disk)" if r else f"{how} refused" for how, r in disks.items())
    return f"{'disk-bound: ' if rate >= 0.85 * seen else ''}{rate / 1e6:,.0f} MB/s; the disk alone {text}"


def table_rows(results, contest, disks):
    """results[workload][arrangement]: the outcomes, one a round."""
    bulk, one, many, slow, paced = (results.get(name, {}) for name in ("bulk", "one stream", "many streams", "slow disk", "paced"))
    rows = []
    for place, name in (("a file", "ztape, file, hold"), ("tmpfs", "ztape, tmpfs, hold")):
        if bulk and name in bulk:
            rate = statistics.median(column(bulk[name], "bytes_per_second"))
            note = disk_note(disks[place], rate)
            rows.append(Row(f"bulk bytes/s recording to {place} / haproxy", ratios(column(bulk[name], "bytes_per_second"),
                            column(bulk["haproxy"], "bytes_per_second")), 1.0, 1.25, True, note))
    for what, runs in (("one stream", one), ("many streams", many)):
        if runs:
            rows.append(Row(f"unary requests/s, {what} / haproxy", ratios(column(runs[LOSSLESS], "requests_per_second"),
                            column(runs["haproxy"], "requests_per_second")), .95, 1.05, True,
                            f"{statistics.median(column(runs[LOSSLESS], 'requests_per_second')):,.0f}/s"))
    if one:
        ours, theirs = added(one[LOSSLESS], one["direct"]), added(one["haproxy"], one["direct"])
        rows.append(Row("added p50, one stream / haproxy's", ratios(ours, theirs), 1.0, .9,
                        note=f"{statistics.median(ours):.1f} us to {statistics.median(theirs):.1f} us"))
    if bulk:
        rows += cpu_rows(bulk, contest)
    if slow:
        rows += memory_rows(slow, contest)
    if bulk:
        rows.append(Row("file size / its random bytes, at full rate", column(bulk[LOSSLESS], "size_ratio"), 1.10, 1.05,
                        note=f"the answers themselves {contest.answer_bytes / contest.random_bytes:.3f}"))
        rows.append(Row("  tcpdump's file", column(bulk["tcpdump, file"], "size_ratio")))
    if paced:
        rows.append(Row("  at 40 MB/s", column(paced["ztape, file"], "size_ratio")))
    lost = sum(outcome.lost_bytes for runs in results.values() for name in runs if name.startswith("ztape") and "hold" in name
               for outcome in runs[name])
    rows.append(Row("bytes lost in all lossless runs", [lost], 0, 0,
                    note=f"{contest.checked['captures']} captures verified, with all {contest.checked['bytes']:,} bytes the clients received"))
    return rows


def cpu_rows(bulk, contest):
    ours, theirs = column(bulk[LOSSLESS], "recorder_cpu"), column(bulk["tcpdump, file"], "recorder_cpu")
    direct = column(bulk["direct"], "all_cpu")
    extra = {name: [a - b for a, b in zip(column(bulk[name], "all_cpu"), direct)] for name in bulk}
    rows = [Row("CPU s/GB of the recorder / tcpdump's beside direct", ratios(ours, theirs), 1.0, .8,
                note=f"{statistics.median(ours):.2f} to {statistics.median(theirs):.2f} s/GB; ring {contest.ring_kib >> 10} MiB at the end"),
            Row("  added to the machine / added by tcpdump", ratios(extra[LOSSLESS], extra["tcpdump, file"]),
                note="all processes, less direct: the kernel fills tcpdump's ring in the sender's time")]
    if relayed := bulk.get("haproxy + tcpdump, file"):
        both = [a + b for a, b in zip(column(relayed, "relay_cpu"), column(relayed, "recorder_cpu"))]
        rows.append(Row("  / haproxy's + tcpdump's (relay and record)", ratios(ours, both), note=f"to {statistics.median(both):.2f} s/GB"))
        rows.append(Row("  added to the machine / by haproxy + tcpdump", ratios(extra[LOSSLESS], extra["haproxy + tcpdump, file"])))
    return rows


def memory_rows(slow, contest):
    ours, theirs = column(slow["ztape, slow disk"], "rss_mb"), column(slow["tcpdump, slow disk"], "rss_mb")
    rows = [Row("RSS / tcpdump's, bulk, slow disk", ratios(ours, theirs), .5, .27,
                note=f"{statistics.median(ours):.0f} to {statistics.median(theirs):.0f} MB; tcpdump's ring, grown until it "
                     f"dropped nothing on a quick disk, {contest.ring_kib >> 10} MiB at the end")]
    for name, what, of in (("tcpdump, slow disk, 64 MiB", "  / tcpdump's with a ring of 64 MiB", ours),
                           ("ztape, slow disk, hold", "  with hold / tcpdump's", None)):
        if name in slow:
            rss = column(slow[name], "rss_mb")
            rows.append(Row(what, ratios(of, rss) if of else ratios(rss, theirs)))
    return rows


def details(page, results, workloads):
    def show(values, scale=1.0):
        return harness.cell(harness.median_interval([value * scale for value in values if value is not None]))

    for workload in workloads:
        runs = results[workload.name]
        bulk = workload.name in ("bulk", "slow disk", "paced")
        rate, scale = ("bytes_per_second", 1e-6) if bulk else ("requests_per_second", 1.0)
        lines = [["arrangement", "MB/s" if bulk else "requests/s", "/ direct", "relay CPU s/GB" if bulk else "CPU us/request",
                  "recorder CPU s/GB" if bulk else "p50 us", "all CPU s/GB" if bulk else "added us", "RSS MB", "lost"]]
        for name, outcomes in runs.items():
            drops, lost = column(outcomes, "kernel_drops"), column(outcomes, "lost_bytes")
            text = f"{max(drops)} packets" if drops[0] is not None else f"{max(lost):,} B" if lost[0] is not None else "-"
            direct = runs.get("direct")
            middle = [show(column(outcomes, field)) for field in ("relay_cpu", "recorder_cpu", "all_cpu")] if bulk else [
                show(column(outcomes, "cpu_us_per_request")), show(column(outcomes, "p50_us")),
                show(added(outcomes, direct)) if workload.latencies and name != "direct" else "-"]
            lines.append([name, show(column(outcomes, rate), scale),
                          show(ratios(column(outcomes, rate), column(direct, rate))) if direct else "-", *middle,
                          show(column(outcomes, "rss_mb")), text])
        page.heading(f"{workload.name}: {workload.requests:,} requests, {workload.connections} connection(s), {workload.streams} stream(s) each")
        page.table(lines)


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev bench proxy", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ztape", default="build/release/ztape", metavar="FILE")
    parser.add_argument("--programs", default="build/release/bench", metavar="DIR", help="where block_server is")
    parser.add_argument("--pairs", type=int, metavar="N", help="rounds; every contestant runs once in each (10; 3 with --quick)")
    parser.add_argument("--quick", action="store_true", help="3 short rounds, in under 90 s: for a look, not for the record")
    parser.add_argument("--scale", type=float, metavar="X", help="multiplies the requests of every run (1; 0.5 with --quick)")
    parser.add_argument("--dir", default="build", metavar="DIR", help="on the disk to record to")
    parser.add_argument("--workload", action="append", choices=["one stream", "many streams", "bulk", "slow disk", "paced"])
    parser.add_argument("--ztape-option", action="append", default=[], metavar="OPTION", help="given to ztape proxy; repeatable")
    parser.add_argument("--neighbours", action="store_true", help="nginx stream and socat too, where they are installed")
    parser.add_argument("--json", metavar="FILE", help="every figure of every run")
    parser.add_argument("--markdown", metavar="FILE", help="what is printed, as a page")
    options = parser.parse_args()
    options.pairs = options.pairs or (3 if options.quick else 10)
    options.scale = options.scale or (0.5 if options.quick else 1.0)
    if options.pairs < 1 or options.scale <= 0:
        parser.error("--pairs and --scale must be above 0")
    for program in ("h2load", "haproxy", "tcpdump", "taskset"):
        if not shutil.which(program):
            parser.error(f"{program} is not installed (./dev deps)")
    os.makedirs(options.dir, exist_ok=True)
    options.ztape, options.server = os.path.abspath(options.ztape), os.path.join(os.path.abspath(options.programs), "block_server")
    return options


def plan(options, contest):
    """[(workload, {arrangement: (start, must be lossless)})]"""
    def of(count):
        return max(1, int(count * options.scale))

    beside = {}
    if options.neighbours:
        beside = {name: (start, False) for name, start in (("nginx", contest.nginx), ("socat", contest.socat)) if shutil.which(name)}
    relays = {"direct": (contest.direct, False), "haproxy": (contest.haproxy, False), **beside}
    small = relays | {"ztape, file, hold": (contest.ztape_file_hold, True), "ztape, file": (contest.ztape_file, False)}
    bulk = relays | {"ztape, file, hold": (contest.ztape_file_hold, True)}
    if TMPFS.is_dir():
        bulk["ztape, tmpfs, hold"] = (contest.ztape_tmpfs_hold, True)
    bulk |= {"ztape, file": (contest.ztape_file, False), "tcpdump, file": (contest.tcpdump, True),
             "haproxy + tcpdump, file": (contest.haproxy_tcpdump, True)}
    slow = {"ztape, slow disk": (contest.ztape_slow, False), "ztape, slow disk, hold": (contest.ztape_slow_hold, False),
            "tcpdump, slow disk": (contest.tcpdump_slow, False), "tcpdump, slow disk, 64 MiB": (contest.tcpdump_slow_64, False)}
    if options.quick:  # what the rows need
        for arrangements, left_out in ((small, ["ztape, file"]), (bulk, ["ztape, file", "haproxy + tcpdump, file"]),
                                       (slow, ["ztape, slow disk, hold", "tcpdump, slow disk, 64 MiB"])):
            for name in left_out:
                del arrangements[name]
    whole = [(Workload("one stream", "GetBlock", of(20_000), latencies=True), small),
             (Workload("many streams", "GetBlock", of(160_000), connections=8, streams=16), small),
             (Workload("bulk", "GetBlockRange", of(16), chains=of(16)), bulk),
             (Workload("slow disk", "GetBlockRange", 4), slow),
             (Workload("paced", "GetBlockRange", 16, chains=1, h2load=["--rps=10", "-Hx-parts: 16"]), {"ztape, file": (contest.ztape_file, False)})]
    return [(w, arrangements) for w, arrangements in whole if not options.workload or w.name in options.workload]


INTRODUCTION = """
# The recorder beside its neighbours

Made by `./dev bench proxy --markdown docs/bench.md`; `bench/README.md` says how each contestant is set up and what each row means. In the first three rows higher is better, in the
others lower. *MISSED* says plainly that what must hold does not hold yet.
"""


def main():
    options = parse_arguments()
    page = harness.Page()
    environment = harness.environment([[options.ztape, "--version"], ["haproxy", "-v"], ["tcpdump", "--version"], ["h2load", "--version"]]
                                      + ([["nginx", "-v"], ["socat", "-V"]] if options.neighbours else []))
    environment["rounds"] = f"{options.pairs}, scale {options.scale:g}{', short form (--quick)' if options.quick else ''}"
    environment["load average"] = " ".join(f"{one:.2f}" for one in os.getloadavg())
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.dir) as folder:
        contest = Contest(options, pathlib.Path(folder))
        environment["pinned"] = f"client to CPU {contest.client_cpus}, server {contest.server_cpus}, what is between or beside {contest.middle_cpus}"
        page.facts(environment)
        runs = plan(options, contest)
        results = {workload.name: {name: [] for name in arrangements} for workload, arrangements in runs}
        try:
            size = int((1 << 30) * min(1, options.scale)) >> 20 << 20
            disks = {"a file": disk.rates(folder, size), "tmpfs": disk.rates(TMPFS, size)} if "bulk" in results else {}
            page.facts({f"haproxy's best, {workload.name}": contest.choose_haproxy(workload) for workload, arrangements in runs if "haproxy" in arrangements})
            for number in range(options.pairs):
                print(f"round {number + 1} of {options.pairs}", file=sys.stderr, flush=True)
                for workload, arrangements in runs:
                    for name in list(arrangements) if number % 2 == 0 else reversed(arrangements):
                        start, lossless = arrangements[name]
                        outcome = contest.measure(start, workload, check=number == 0 or not options.quick, lossless=lossless)
                        results[workload.name][name].append(outcome)
        finally:
            contest.close()
    rows = table_rows(results, contest, disks)
    everything = [o for of_workload in results.values() for outcomes in of_workload.values() for o in outcomes]
    foreign = statistics.median(o.foreign_share for o in everything)
    page.heading("What must hold")
    page.table(table(rows))
    page.line(f"{options.pairs} rounds; other processes used {foreign:.2f} CPUs (median) while a run was on; tcpdump runs repeated "
              f"with a larger ring: {contest.ring_retries}")
    if foreign > 0.2:
        page.line("The machine was busy with something else: repeat on a quiet one.")
    details(page, results, [workload for workload, _ in runs])
    if options.markdown:
        page.write(options.markdown, INTRODUCTION)
    if options.json:
        document = {"environment": environment, "pairs": options.pairs, "scale": options.scale, "quick": options.quick,
                    "haproxy": {name: str(best) for name, best in contest.haproxy_best.items()}, "ring_kib": contest.ring_kib,
                    "disks": disks, "answer_bytes": contest.answer_bytes, "random_bytes": contest.random_bytes,
                    "rows": [row.document() for row in rows], "foreign_cpus": foreign,
                    "runs": {w: {name: [vars(o) for o in outcomes] for name, outcomes in arrangements.items()}
                             for w, arrangements in results.items()}}
        harness.write_json(options.json, document)
    return 0


if __name__ == "__main__":
    harness.exit_with(main)
