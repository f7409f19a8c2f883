// peer_server: a light-wallet server by grpc++ whose answers follow from the requests alone.
#include <pthread.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>

#include "tests/peer/metadata.h"
#include "tests/peer/service.h"

namespace ztape::peer {
namespace {

constexpr char kUsage[] =
    "Usage: peer_server [--listen 127.0.0.1:0] [--change Type.field@N]... [--change-at-height H]\n"
    "                   [--die-after CALLS] [--delay 40ms] [--max-frame-bytes 16384]\n"
    "                   [--tls-cert FILE --tls-key FILE]\n"
    "Prints 'listening on ADDRESS'; SIGTERM or SIGINT ends it.\n";

struct Words {
  std::string listen = "127.0.0.1:0";
  std::string tls_cert, tls_key;
  int max_frame_bytes = 0;  // 0: grpc++ chooses, and rather large ones
  ServerOptions options;
  Changes changes;
};

std::chrono::microseconds duration(const std::string& text) {
  std::size_t digits = 0;
  const auto number = std::stoll(text, &digits);
  const auto unit = text.substr(digits);
  if (unit == "us") return std::chrono::microseconds(number);
  if (unit == "ms") return std::chrono::milliseconds(number);
  if (unit == "s") return std::chrono::seconds(number);
  throw std::invalid_argument("'" + text + "' is no duration (500us, 40ms, 2s)");
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::invalid_argument("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::shared_ptr<grpc::ServerCredentials> credentials(const Words& words) {
  if (words.tls_cert.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back({words.tls_key, words.tls_cert});
  return grpc::SslServerCredentials(options);
}

void read_words(int argc, char** argv, Words& words) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) throw std::invalid_argument("'" + name + "' is unknown or has no value");
    const std::string value = argv[i + 1];
    if (name == "--listen") {
      words.listen = value;
    } else if (name == "--tls-cert") {
      words.tls_cert = text_of(value);
    } else if (name == "--tls-key") {
      words.tls_key = text_of(value);
    } else if (name == "--change") {
      words.changes.add(value);
    } else if (name == "--change-at-height") {
      words.changes.at_height(std::stoull(value));
    } else if (name == "--die-after") {
      words.options.die_after = std::stoull(value);
    } else if (name == "--max-frame-bytes") {
      words.max_frame_bytes = std::stoi(value);
    } else if (name == "--delay") {
      words.options.delay = duration(value);
    } else {
      throw std::invalid_argument("unknown option '" + name + "'");
    }
  }
}

int serve(Words& words) {
  // Before any thread is made, so that none of grpc's takes the signal.
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);

  Gate gate(words.options);
  LightwalletService lightwallet(gate, words.changes);
  EchoService echo(gate);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(words.listen, credentials(words), &port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  if (words.max_frame_bytes > 0) {
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // it would raise the size again
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, words.max_frame_bytes);
  }
  builder.RegisterService(&lightwallet);
  builder.RegisterService(&echo);
  const auto server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    std::fprintf(stderr, "peer_server: cannot listen on %s\n", words.listen.c_str());
    return 2;
  }
  std::printf("listening on %s:%d\n", words.listen.substr(0, words.listen.rfind(':')).c_str(), port);
  std::fflush(stdout);
  int number = 0;
  sigwait(&stop, &number);
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
  return 0;
}

}  // namespace
}  // namespace ztape::peer

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) {
    std::fputs(ztape::peer::kUsage, stdout);
    return 0;
  }
  ztape::peer::Words words;
  try {
    ztape::peer::read_words(argc, argv, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "peer_server: %s\n%s", error.what(), ztape::peer::kUsage);
    return 2;
  }
  return ztape::peer::serve(words);
}
