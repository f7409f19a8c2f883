"""The arithmetic of ./dev bench: what it reads out of other programs' texts and how it sums up. Nothing is timed here.

Usage: bench_test.py FOLDER_OF_BENCH
"""

import pathlib
import struct
import sys
import tempfile
import time
import unittest

sys.path.insert(0, sys.argv.pop(1))

import compact_blocks  # noqa: E402
import contestants  # noqa: E402
import growth_bench  # noqa: E402
import harness  # noqa: E402
import load  # noqa: E402
import proxy_bench  # noqa: E402
import rows  # noqa: E402


class Texts(unittest.TestCase):
    def test_durations_of_h2load(self):
        for text, seconds in (("812us", 812e-6), ("500.20ms", 0.5002), ("1.25s", 1.25), ("2m", 120)):
            self.assertAlmostEqual(load.seconds_of(text), seconds)

    def test_what_the_proxy_says_it_lost(self):
        self.assertEqual(contestants.lost_bytes(0, "1 connection\nlost: nothing\n", ""), 0)
        page = "1 connection\nlost: 533 chunks with 103,718,567 bytes (4 gaps in the capture)\n"
        self.assertEqual(contestants.lost_bytes(3, page, ""), 103_718_567)
        self.assertEqual(contestants.lost_bytes(3, "lost: 1 chunk with 1 byte\n", ""), 1)
        with self.assertRaisesRegex(harness.BenchError, "139"):
            contestants.lost_bytes(139, "", "")


class Sums(unittest.TestCase):
    def test_median_and_its_interval(self):
        self.assertIsNone(harness.median_interval([None]))
        self.assertEqual(harness.median_interval([4.0] * 10), (4.0, 4.0, 4.0))
        middle, low, high = harness.median_interval(list(range(1, 102)))
        self.assertEqual(middle, 51)
        self.assertTrue(35 <= low < 51 < high <= 67, (low, high))

    def test_ratios_are_of_the_same_round(self):
        self.assertEqual(rows.ratios([50, 300], [100, 100]), [0.5, 3.0])
        self.assertEqual(rows.ratios([None, 300], [100, 100]), [3.0])

    def test_marks(self):
        def mark(values, *goals, **how):
            return rows.Row("", values, *goals, **how).mark()

        self.assertEqual(mark([0.5] * 5, 1.0, 0.8), "pass, aim")
        self.assertEqual(mark([0.9] * 5, 1.0, 0.8), "pass")
        self.assertEqual(mark([1.1] * 5, 1.0, 0.8), "MISSED")
        self.assertEqual(mark([1.1] * 5, 1.0, 1.25, higher=True), "pass")
        self.assertEqual(mark([0.9] * 5, 1.0, 1.25, higher=True), "MISSED")
        self.assertEqual(mark([0.8, 0.99, 1.2], 1.0, 0.5), "pass, about")
        self.assertEqual(mark([0], 0, 0), "pass")
        self.assertEqual(mark([1], 0, 0), "MISSED")
        self.assertEqual(mark([None], 1.0), "not measured")
        self.assertEqual(mark([7]), "")


def fields(body):
    """[(number, wire type, value)] of a protobuf message."""
    def varint():
        nonlocal at
        number = shift = 0
        while True:
            byte = body[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    found, at = [], 0
    while at < len(body):
        tag = varint()
        value = varint()
        if tag & 7 == 2:
            value, at = body[at:at + value], at + value
        found.append((tag >> 3, tag & 7, value))
    return found


class Growth(unittest.TestCase):
    def test_the_costs_of_a_frame_and_of_a_byte_are_found(self):
        points = [(f, b, 2e-6 * f + 3e-9 * b) for f, b in ((1000, 10_000), (1000, 9_000_000), (50_000, 700_000), (7, 1 << 30))]
        frame, byte = growth_bench.fit(points)
        self.assertAlmostEqual(frame * 1e6, 2)
        self.assertAlmostEqual(byte * 1e9, 3)

    def test_no_cost_is_below_nothing(self):
        self.assertEqual(growth_bench.fit([(10, 1000, 1.0), (20, 500, 2.0)])[1], 0.0)
        self.assertEqual(growth_bench.fit([(1000, 10, 1.0), (500, 20, 2.0)])[0], 0.0)

    def test_a_rise_is_against_the_cheapest_so_far(self):
        def points(*costs):
            made = []
            for cost in costs:
                made.append(growth_bench.Point("", "", 10))
                made[-1].runs["ztape"] = [(cost * 10, 0.0)]
            return made

        self.assertEqual(growth_bench.rise(points(5.0, 2.0, 3.0), "ztape"), 1.5)
        self.assertEqual(growth_bench.rise(points(5.0, 2.0), "ztape"), 1.0)

    def test_frames_of_a_load(self):
        self.assertEqual(growth_bench.Point("", "", 10, message_bytes=1000).frames, 40)
        self.assertEqual(growth_bench.Point("", "", 1, message_bytes=16384, messages=3).frames, 3 + 3 * 2)


class CompactBlocks(unittest.TestCase):
    def test_the_count_of_random_bytes_is_that_of_the_random_fields(self):
        answer, random_bytes = compact_blocks.answer(7, 200_000)
        self.assertGreaterEqual(len(answer), 200_000)
        counted, heights, hashes, at = 0, [], [], 0
        while at < len(answer):
            compressed, length = struct.unpack_from(">BI", answer, at)
            self.assertEqual(compressed, 0)
            block = fields(answer[at + 5:at + 5 + length])
            at += 5 + length
            heights += [value for number, _, value in block if number == 2]
            hashes.append({number: value for number, _, value in block if number in (3, 4)})
            counted += 32
            for transaction in (fields(value) for number, _, value in block if number == 7):
                for number, _, value in transaction:
                    if number == 2:
                        counted += len(value)
                    if number in (4, 5, 6):
                        counted += sum(len(inner) for _, _, inner in fields(value))
        self.assertEqual(counted, random_bytes)
        self.assertEqual(heights, list(range(heights[0], heights[0] + len(heights))))
        for previous, block in zip(hashes, hashes[1:]):
            self.assertEqual(block[4], previous[3])

    def test_it_is_the_same_every_time(self):
        self.assertEqual(compact_blocks.answer(3, 1000), compact_blocks.answer(3, 1000))
        self.assertNotEqual(compact_blocks.answer(3, 1000), compact_blocks.answer(4, 1000))


class Pcap(unittest.TestCase):
    """The bytes of a stream out of a file of packets that were lost, doubled, and the other way round."""

    def bytes_of(self, *segments, first=5000):
        def packet(sequence, payload, source=80, flags=0x10):
            tcp = struct.pack(">HHIIBBHHH", source, 1234, sequence % (1 << 32), 0, 5 << 4, flags, 0, 0, 0)
            ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp) + payload, 0, 0, 64, 6, 0, bytes(4), bytes(4))
            body = bytes(12) + b"\x08\x00" + ip + tcp + bytes(payload)
            return struct.pack("<IIII", 0, 0, len(body), len(body)) + body

        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.pcap"
            path.write_bytes(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1) + packet(first - 1, 0, flags=0x12)
                             + packet(first, 9, source=99)
                             + b"".join(packet(first + begin, length) for begin, length in segments))
            return contestants.captured_stream_bytes(path, 80)

    def test_in_order_doubled_and_swapped(self):
        self.assertEqual(self.bytes_of((0, 100), (100, 50)), 150)
        self.assertEqual(self.bytes_of((0, 100), (0, 100), (50, 100)), 150)
        self.assertEqual(self.bytes_of((100, 50), (0, 100), (200, 1), (150, 50)), 201)

    def test_a_hole_ends_the_count(self):
        self.assertEqual(self.bytes_of((0, 100), (101, 50)), 100)

    def test_sequence_numbers_wrap(self):
        self.assertEqual(self.bytes_of((0, 100), (100, 100), (200, 100), first=(1 << 32) - 150), 300)


class SlowDisk(unittest.TestCase):
    def test_it_takes_no_more_than_its_rate(self):
        with tempfile.TemporaryDirectory() as folder:
            sink = contestants.SlowSink(pathlib.Path(folder) / "pipe", 4e6)
            began = time.monotonic()
            with open(sink.path, "wb") as pipe:
                pipe.write(bytes(1_000_000))
            sink.join()
            self.assertEqual(sink.bytes, 1_000_000)
            self.assertGreater(time.monotonic() - began, 0.2)  # never quicker; how much slower is the machine's affair


class Processes(unittest.TestCase):
    def test_a_child_is_accounted_for(self):
        process = harness.Process(["sh", "-c", "echo ready; read line"])
        self.assertEqual(process.first_line(), "ready")
        status, _, _ = process.wait()
        self.assertEqual(status, 1)  # its stdin is empty
        self.assertGreater(process.cpu_seconds, 0)

    def test_a_failing_program_is_an_error_with_its_text(self):
        with self.assertRaisesRegex(harness.BenchError, "because"):
            harness.run(["sh", "-c", "echo because >&2; exit 3"])

    def test_a_server_that_ends_is_noticed_at_once(self):
        process = harness.Process(["sh", "-c", "echo no port >&2"])
        with self.assertRaisesRegex(harness.BenchError, "no port"):
            harness.wait_for_listener(harness.free_port(), process, seconds=60)
        process.child.stdout.close()
        process.child.stderr.close()


if __name__ == "__main__":
    unittest.main()
