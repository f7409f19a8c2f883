"""The arithmetic of ./dev bench: what it reads out of other programs' texts and how it sums up. Nothing is timed here.

Usage: bench_test.py FOLDER_OF_BENCH
"""

import struct
import sys
import types
import unittest

sys.path.insert(0, sys.argv.pop(1))

import harness  # noqa: E402
import proxy_bench  # noqa: E402


class Texts(unittest.TestCase):
    def test_durations_of_h2load(self):
        for text, seconds in (("812us", 812e-6), ("500.20ms", 0.5002), ("1.25s", 1.25), ("2m", 120)):
            self.assertAlmostEqual(proxy_bench.seconds_of(text), seconds)

    def test_what_the_proxy_says_it_lost(self):
        self.assertEqual(proxy_bench.lost_bytes(0, "1 connection\nlost: nothing\n", ""), 0)
        page = "1 connection\nlost: 533 chunks with 103,718,567 bytes (4 gaps in the capture)\n"
        self.assertEqual(proxy_bench.lost_bytes(3, page, ""), 103_718_567)
        self.assertEqual(proxy_bench.lost_bytes(3, "lost: 1 chunk with 1 byte\n", ""), 1)
        with self.assertRaisesRegex(harness.BenchError, "139"):
            proxy_bench.lost_bytes(139, "", "")

    def test_losses_of_several_runs(self):
        workload = types.SimpleNamespace(requests=10, response_bytes=100)

        def runs(*lost):
            return [types.SimpleNamespace(lost_bytes=count) for count in lost]

        self.assertEqual(proxy_bench.lost_text(runs(None, None), workload), "-")
        self.assertEqual(proxy_bench.lost_text(runs(0, 0), workload), "0")
        self.assertEqual(proxy_bench.lost_text(runs(0, 50, 250), workload), "in 2 of 3 runs, at most 25.0% of the bytes")


class Sums(unittest.TestCase):
    def test_median_and_its_interval(self):
        self.assertIsNone(harness.median_interval([None]))
        self.assertEqual(harness.median_interval([4.0] * 10), (4.0, 4.0, 4.0))
        middle, low, high = harness.median_interval(list(range(1, 102)))
        self.assertEqual(middle, 51)
        self.assertTrue(35 <= low < 51 < high <= 67, (low, high))

    def test_ratios_are_of_the_same_round(self):
        def rounds(*rates):
            return [types.SimpleNamespace(rate=rate) for rate in rates]

        self.assertEqual(proxy_bench.ratios(rounds(50, 300), rounds(100, 100), "rate"), [0.5, 3.0])
        self.assertEqual(proxy_bench.ratios(rounds(None, 300), rounds(100, 100), "rate"), [3.0])

    def test_answers_are_grpc_messages(self):
        import random

        text = proxy_bench.message(random.Random(7), 1000)
        self.assertEqual(struct.unpack(">BI", text[:5]), (0, 1000))
        self.assertEqual(len(text), 1005)


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
