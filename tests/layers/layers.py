"""Who may include what, and how long a file may be. Exit 1 and one line a breach; run by ctest and by hand.

Usage: layers.py ROOT [FILE...]      without files: every one of ours
"""

import pathlib
import re
import shutil
import subprocess
import sys

# Each folder uses only itself and what stands before it. CONTRIBUTING.md has the same list for people.
LAYERS = ["proto", "capture-format", "http2", "net", "proxy", "diagnose", "replay", "report", "cli"]
OUTSIDE = ["tests", "bench"]  # may use every layer

# header -> where it may stand: folders, or single files
RESTRICTED = [
    (re.compile(r"uv(/.*)?\.h$"), ["net/", "cli/main.cc", "tests/"], "libuv belongs to net/ (cli/main.cc: its version)"),
    (re.compile(r"openssl/"), ["net/tls_", "net/self_signed.cc", "cli/main.cc", "tests/"], "OpenSSL belongs to net/'s TLS files"),
    (re.compile(r"cxxopts\.hpp$"), ["cli/"], "arguments are parsed in cli/"),
    (re.compile(r"spdlog/sinks/"), ["cli/"], "only cli/ decides where logs go"),
    (re.compile(r"grpc(pp|\+\+)?/|.*\.grpc\.pb\.h$"), ["tests/", "bench/"], "grpc++ is the independent peer, not our engine"),
    (re.compile(r"prometheus/"), ["report/"], "metrics are written in report/"),
    (re.compile(r"nlohmann/"), ["report/", "cli/", "tests/"], "JSON is written in report/"),
    (
        re.compile(r"(sys/(socket|un|epoll)|netinet/.*|arpa/inet|netdb|linux/(tcp|sockios))\.h$"),
        ["net/", "proxy/", "diagnose/", "replay/", "report/", "cli/", "tests/", "bench/"],
        "proto/, capture-format/ and http2/ know no sockets",
    ),
    (re.compile(r"zstd.*\.h$"), ["capture-format/", "cli/main.cc", "tests/"], "the file's compression belongs to capture-format/"),
    (re.compile(r"http_parser\.h$"), ["http2/"], "HTTP/1 is read in http2/"),
    (re.compile(r"gtest/|rapidcheck"), ["tests/"], "test libraries stay in tests/"),
]

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
LINKS = re.compile(r"target_link_libraries\s*\(\s*(\w+)([^)]*)\)", re.DOTALL)
SOURCES = {".cc", ".h"}
MAX_LINES = 800


def breaches_of_source(path, text):
    """`path` is relative to the root, with forward slashes."""
    found = []
    folder = path.split("/")[0]
    for match in INCLUDE.finditer(text):
        quoted, header = match.group(1), match.group(1) or match.group(2)
        line = text.count("\n", 0, match.start(1 if quoted else 2)) + 1
        target = header.split("/")[0]
        if folder in LAYERS and "/" in header:
            if target in LAYERS and LAYERS.index(target) > LAYERS.index(folder):
                found.append(f"{path}:{line}: {folder}/ may not include {header}: {target}/ stands after it")
            elif target in OUTSIDE:
                found.append(f"{path}:{line}: {folder}/ may not include {header}")
        if quoted and header.startswith("../"):
            found.append(f"{path}:{line}: {header}: includes start at the root of the project")
        for pattern, places, reason in RESTRICTED:
            if pattern.match(header) and not any(path.startswith(place) for place in places):
                found.append(f"{path}:{line}: {header}: {reason}")
    return found


def breaches_of_length(path, text):
    lines = text.count("\n")
    return [f"{path}: {lines} lines, over {MAX_LINES}"] if lines > MAX_LINES else []


def breaches_of_links(path, text):
    """A library of a layer may not link one of a later layer."""
    folder = path.split("/")[0]
    if folder not in LAYERS:
        return []
    found = []
    for match in LINKS.finditer(re.sub(r"#.*", "", text)):
        for library in re.findall(r"\bztape_(\w+)\b", match.group(2)):
            target = library.replace("_", "-")
            if target in LAYERS and LAYERS.index(target) > LAYERS.index(folder):
                found.append(f"{path}: {match.group(1)} may not link ztape_{library}: {target}/ stands after {folder}/")
    return found


def breaches(path, text):
    if path.endswith("CMakeLists.txt"):
        return breaches_of_links(path, text)
    if pathlib.PurePosixPath(path).suffix in SOURCES:
        return breaches_of_source(path, text) + breaches_of_length(path, text)
    return []


def files_below(root):
    """Every tracked file of ours; without git or a checkout (a source archive), every one in the
    folders we know."""
    git = shutil.which("git")
    listed = None
    if git and (root / ".git").exists():
        listed = subprocess.run(
            [git, "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            capture_output=True,
            text=True,
            check=False,
        )
    if listed and listed.returncode == 0:
        for name in sorted(filter(None, listed.stdout.split("\0"))):
            path = root / name
            if path.is_file() and (path.suffix in SOURCES or path.name == "CMakeLists.txt"):
                yield path
        return
    for folder in LAYERS + OUTSIDE:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and (path.suffix in SOURCES or path.name == "CMakeLists.txt"):
                yield path


def main(arguments):
    root = pathlib.Path(arguments[0]).resolve()
    paths = [pathlib.Path(name).resolve() for name in arguments[1:]] or list(files_below(root))
    found = []
    for path in paths:
        found += breaches(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
    for line in found:
        print(line)
    print(f"{len(paths)} files, {len(found)} breaches")
    # No file read means that the root is wrong: that must not pass.
    return 1 if found or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
