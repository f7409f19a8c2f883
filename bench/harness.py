"""What every bench needs: processes that are pinned and accounted for, medians with intervals, what machine this is.

Python's standard library only; Linux.
"""

import json
import os
import pathlib
import platform
import random
import re
import socket
import statistics
import subprocess
import sys
import time

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class BenchError(Exception):
    """Something that makes a figure worthless. The message is for a person."""


def cpu_sets():
    """(client, server, middle). The two ends keep to a CPU of their own; what is measured between them takes what is
    free, or, where there are no more than three, may run anywhere: the same for every contestant."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) >= 4:
        return {cpus[0]}, {cpus[1]}, set(cpus[2:])
    if len(cpus) >= 2:
        return {cpus[0]}, {cpus[1]}, set(cpus)
    return set(cpus), set(cpus), set(cpus)


class Process:
    """A child with its own CPUs. `stop` tells what it cost."""

    def __init__(self, arguments, cpus=None, stdout=subprocess.PIPE, stderr=subprocess.PIPE):
        prefix = ["taskset", "-c", ",".join(map(str, sorted(cpus)))] if cpus else []
        self.arguments = arguments
        self.cpu_seconds = 0.0
        self.child = subprocess.Popen(prefix + arguments, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, text=True)

    def first_line(self):
        line = self.child.stdout.readline()
        if not line:
            raise BenchError(f"{self.arguments[0]} said nothing: {self.child.stderr.read().strip()}")
        return line.rstrip("\n")

    def running_cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND  # utime and stime, all threads

    def peak_resident_mb(self):
        status = pathlib.Path(f"/proc/{self.child.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) / 1024

    def wait(self):
        """(exit status, stdout, stderr); sets cpu_seconds from the kernel's own account of the whole life."""
        # The output of what runs here is a page at most: it fits into the pipes.
        _, status, usage = os.wait4(self.child.pid, 0)
        self.cpu_seconds = usage.ru_utime + usage.ru_stime
        self.child.returncode = os.waitstatus_to_exitcode(status)
        texts = [stream.read() if stream else "" for stream in (self.child.stdout, self.child.stderr)]
        for stream in (self.child.stdout, self.child.stderr):
            if stream:
                stream.close()
        return self.child.returncode, *texts

    def stop(self, signal):
        if self.child.returncode is None:
            self.child.send_signal(signal)
            return self.wait()
        return self.child.returncode, "", ""


def run(arguments, cpus=None):
    process = Process(arguments, cpus)
    status, out, err = process.wait()
    if status != 0:
        raise BenchError(f"{' '.join(arguments)}: exit status {status}: {err.strip() or out.strip()}")
    return out, process.cpu_seconds


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_listener(port, process, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if process.child.poll() is not None:
                raise BenchError(f"{process.arguments[0]} ended: {process.child.stderr.read().strip()}") from None
            time.sleep(0.01)
    raise BenchError(f"{process.arguments[0]} does not listen on port {port}")


def busy_seconds():
    """CPU time that anything on this machine has used, all CPUs together."""
    fields = list(map(int, pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]))
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields[:8]
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND


def median_interval(values, rounds=2000):
    """(median, low, high): 95 % of resampled medians lie between."""
    values = [value for value in values if value is not None]
    if not values:
        return None
    numbers = random.Random(1)
    medians = sorted(statistics.median(numbers.choices(values, k=len(values))) for _ in range(rounds))
    return statistics.median(values), medians[int(rounds * 0.025)], medians[int(rounds * 0.975) - 1]


def significant(value):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cell(triple):
    if triple is None:
        return "-"
    middle, low, high = map(significant, triple)
    return f"{middle} [{low} {high}]"


class Page:
    """What is printed, and the same as Markdown."""

    def __init__(self):
        self.markdown = []

    def line(self, text=""):
        print(text, flush=True)
        self.markdown.append(text)

    def heading(self, text):
        print(f"\n{text}")
        self.markdown += ["", f"## {text}", ""]

    def table(self, rows):
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for number, row in enumerate(rows):
            print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip(), flush=True)
            if number == 0:
                print("  ".join("-" * width for width in widths))
        self.markdown += ["", *("| " + " | ".join(text.strip() for text in row) + " |" for row in rows), ""]
        self.markdown.insert(-len(rows), "|" + "---|" * len(rows[0]))

    def facts(self, named):
        width = max(map(len, named), default=0) + 2
        for name, text in named.items():
            for one in text if isinstance(text, list) else [text]:
                print(f"{name:<{width}}{one}", flush=True)
        self.markdown += ["", *(f"- {name}: {'; '.join(text) if isinstance(text, list) else text}" for name, text in named.items()), ""]

    def write(self, path, introduction):
        text = introduction.strip() + "\n\n" + "\n".join(self.markdown)
        pathlib.Path(path).write_text(re.sub(r"\n{3,}", "\n\n", text).strip() + "\n")


def _first_line_of(arguments):
    try:
        text = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
    except OSError:
        return f"{arguments[0]}: not found"
    return text.split("\n", 1)[0].strip()


def commit():
    """Of the sources beside this file."""
    text = _first_line_of(["git", "-C", str(pathlib.Path(__file__).resolve().parent), "describe", "--always", "--dirty", "--abbrev=10"])
    return text or "unknown"


def environment(version_commands):
    """What the machine is; name -> text or list."""
    model = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {
        "when": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "commit": commit(),
        "kernel": platform.release(),
        "CPUs": f"{len(os.sched_getaffinity(0))} x {model.group(1) if model else platform.machine()}",
        "congestion control": pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip(),
        "versions": [_first_line_of(command) for command in version_commands],
    }


def write_json(path, document):
    pathlib.Path(path).write_text(json.dumps(document, indent=1) + "\n")


def exit_with(main):
    """What a bench's script ends with: main's status, or one line that says what made its figures worthless."""
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"bench: {error}")
