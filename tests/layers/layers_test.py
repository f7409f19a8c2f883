"""The test of the layer test: every rule can fail, and what is allowed passes."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

import layers


class Breaches(unittest.TestCase):
    def assert_breach(self, path, text, words):
        found = layers.breaches(path, text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def assert_clean(self, path, text):
        self.assertEqual(layers.breaches(path, text), [])

    def test_a_lower_layer_may_not_include_a_higher_one(self):
        self.assert_breach("http2/frame.cc", '// why\n#include "net/tcp.h"\n', "http2/frame.cc:2: http2/ may not include")
        for lower in range(len(layers.LAYERS)):
            for higher in range(len(layers.LAYERS)):
                text = f'#include "{layers.LAYERS[higher]}/x.h"\n'
                found = layers.breaches(f"{layers.LAYERS[lower]}/y.cc", text)
                self.assertEqual(len(found), 1 if higher > lower else 0, (lower, higher))

    def test_the_product_may_not_include_tests_or_bench(self):
        self.assert_breach("cli/main.cc", '#include "tests/support/frames.h"\n', "may not include")
        self.assert_breach("replay/plan.cc", '#include "bench/x.h"\n', "may not include")

    def test_libuv_stays_in_net(self):
        self.assert_breach("proxy/relay.h", "#include <uv.h>\n", "libuv")
        self.assert_breach("cli/proxy.cc", "#  include <uv.h>\n", "libuv")
        self.assert_clean("net/tcp.cc", "#include <uv.h>\n")
        self.assert_clean("cli/main.cc", "#include <uv.h>\n")

    def test_openssl_stays_in_nets_tls_files(self):
        self.assert_breach("proxy/relay.h", "#include <openssl/ssl.h>\n", "OpenSSL")
        self.assert_breach("net/tcp.cc", "#include <openssl/ssl.h>\n", "OpenSSL")
        self.assert_clean("net/tls_engine.cc", "#include <openssl/ssl.h>\n")

    def test_cxxopts_and_sinks_stay_in_cli(self):
        self.assert_breach("report/text.cc", "#include <cxxopts.hpp>\n", "arguments")
        self.assert_breach("proxy/tap.cc", "#include <spdlog/sinks/stdout_color_sinks.h>\n", "logs")
        self.assert_clean("cli/command.cc", "#include <cxxopts.hpp>\n#include <spdlog/sinks/null_sink.h>\n")
        self.assert_clean("proxy/tap.cc", "#include <spdlog/spdlog.h>\n")

    def test_grpc_is_only_a_peer(self):
        for header in ("grpcpp/grpcpp.h", "grpc++/grpc++.h", "grpc/grpc.h", "proto/service.grpc.pb.h"):
            self.assert_breach("replay/engine.cc", f"#include <{header}>\n", "grpc++")
            self.assert_clean("tests/peer/server.cc", f"#include <{header}>\n")

    def test_json_stays_in_report_and_cli(self):
        self.assert_breach("replay/compare.cc", "#include <nlohmann/json.hpp>\n", "JSON")
        self.assert_clean("report/capture_json.cc", "#include <nlohmann/json.hpp>\n")

    def test_zstd_and_test_libraries_keep_to_their_places(self):
        self.assert_breach("proxy/recorder.cc", "#include <zstd.h>\n", "compression")
        self.assert_breach("http2/frame.cc", "#include <gtest/gtest_prod.h>\n", "test libraries")

    def test_the_core_knows_no_sockets(self):
        for header in ("sys/socket.h", "netinet/tcp.h", "arpa/inet.h", "netdb.h", "linux/tcp.h", "uv.h"):
            for folder in ("proto", "capture-format", "http2"):
                self.assertEqual(len(layers.breaches(f"{folder}/x.cc", f"#include <{header}>\n")), 1, (folder, header))
        self.assert_clean("net/address.cc", "#include <netdb.h>\n#include <sys/socket.h>\n")
        self.assert_clean("http2/frame.cc", "#include <sys/types.h>\n")

    def test_includes_start_at_the_root(self):
        self.assert_breach("net/tcp.cc", '#include "../proto/words.h"\n', "root")

    def test_a_library_may_not_link_a_higher_one(self):
        text = "target_link_libraries(ztape_http2 PUBLIC ztape_proto # ztape_cli\n  PRIVATE ztape_capture_format ztape_net)\n"
        self.assert_breach("http2/CMakeLists.txt", text, "may not link ztape_net")
        self.assert_clean("net/CMakeLists.txt", text)
        self.assert_clean("tests/wire/CMakeLists.txt", text)

    def test_a_file_may_not_be_too_long(self):
        self.assert_breach("http2/x.cc", "\n" * 801, "over 800")
        self.assert_clean("http2/x.cc", "\n" * 800)

    def test_a_root_without_files_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(layers.main([folder]), 1)
            source = pathlib.Path(folder, "http2", "frame.cc")
            source.parent.mkdir()
            source.write_text('#include "proto/words.h"\n', encoding="utf-8")
            self.assertEqual(layers.main([folder]), 0)
            source.write_text('#include "cli/command.h"\n', encoding="utf-8")
            self.assertEqual(layers.main([folder]), 1)
            self.assertEqual(layers.main([folder, str(source)]), 1)

    def test_a_checkout_is_read_as_git_lists_it(self):
        with tempfile.TemporaryDirectory() as folder:
            git = shutil.which("git")
            if git is None:
                self.skipTest("no git here")
            subprocess.run([git, "init", "-q", folder], check=True)
            for name in ("http2/frame.cc", "build/http2/generated.cc"):
                source = pathlib.Path(folder, name)
                source.parent.mkdir(parents=True)
                source.write_text('#include "proto/words.h"\n', encoding="utf-8")
            pathlib.Path(folder, ".gitignore").write_text("/build/\n", encoding="utf-8")
            root = pathlib.Path(folder)
            self.assertEqual([path.relative_to(root).as_posix() for path in layers.files_below(root)], ["http2/frame.cc"])


if __name__ == "__main__":
    unittest.main()
