"""h2load: one run, and what it says about it."""

import pathlib
import re
import statistics

import harness
from harness import BenchError

SERVICE = "cash.z.wallet.sdk.rpc.CompactTxStreamer"


def seconds_of(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s|m|h)", text).groups()
    return float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}[unit]


class Load:
    """`seconds` from the first byte sent to the last received; `bytes`: all that came, frame headers included."""

    def __init__(self, out, cpu_seconds):
        self.seconds = seconds_of(re.search(r"finished in ([\d.]+\w+)", out).group(1))
        self.bytes = int(re.search(r"^traffic: \S+ \((\d+)\) total", out, re.MULTILINE).group(1))
        self.cpu_seconds = cpu_seconds
        self.latencies_us = []

    def p50_us(self):
        # Whole microseconds: the grouped median knows that a bin is one wide.
        return statistics.median_grouped(self.latencies_us)

    def quantile_us(self, share):
        return sorted(self.latencies_us)[min(len(self.latencies_us) - 1, int(len(self.latencies_us) * share))]


def run(port, method, requests, *, connections=1, streams=1, cpus=None, options=(), log=None, prefix=(), host="127.0.0.1"):
    """`log`: a file for the latencies of all requests, or None. `prefix`: a command that runs it elsewhere."""
    if log:
        pathlib.Path(log).unlink(missing_ok=True)
    out, cpu_seconds = harness.run(
        [*prefix, "h2load", "-t1", f"-c{connections}", f"-m{streams}", f"-n{requests}", *([f"--log-file={log}"] if log else []), *options,
         f"http://{host}:{port}/{SERVICE}/{method}"], cpus)
    if f" {requests} succeeded, 0 failed" not in out:
        raise BenchError(f"not every request succeeded:\n{out}")
    load = Load(out, cpu_seconds)
    if log:
        load.latencies_us = [int(line.split("\t")[2]) for line in pathlib.Path(log).read_text().splitlines()]
    return load
