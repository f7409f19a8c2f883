#!/usr/bin/python3
"""Reads a capture with zstandard and protobuf alone: what each connection carried, in bytes, frames and headers.

    protoc --proto_path=proto --python_out=DIR capture.proto
    PYTHONPATH=DIR capture-format/examples/read_capture.py sync.ztape
"""
import collections
import sys
import zlib

import zstandard
from google.protobuf.internal.decoder import _DecodeVarint32

import capture_pb2


def records(path):
    with open(path, "rb") as file:
        content = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    at = 0
    while at < len(content):
        length, at = _DecodeVarint32(content, at)
        yield capture_pb2.Record.FromString(content[at : at + length])
        at += length


carried = collections.defaultdict(lambda: [bytearray(), bytearray()])  # by direction
counted = collections.Counter()
for record in records(sys.argv[1]):
    kind = record.WhichOneof("kind")
    if kind == "chunk":
        carried[record.chunk.connection][record.chunk.direction] += record.chunk.bytes
    elif kind in ("frame", "headers"):
        counted[getattr(record, kind).connection, kind] += 1

for connection, directions in sorted(carried.items()):
    print(f"connection {connection}: {counted[connection, 'frame']} frames, {counted[connection, 'headers']} headers")
    for name, content in zip(("client_to_server", "server_to_client"), directions):
        print(f"  {name}: {len(content)} bytes, crc32 {zlib.crc32(content):08x}")
