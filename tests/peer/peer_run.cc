#include "tests/peer/peer_run.h"

#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/peer/digest.h"

namespace ztape::test {
namespace {

constexpr int kGrpcCancelled = 1;
constexpr int kGrpcDeadlineExceeded = 4;
constexpr int kGrpcUnavailable = 14;
constexpr uint32_t kHttp2Cancel = 8;

std::string listening_address(ChildProcess& process) {
  const std::string prefix = "listening on ";
  const auto line = process.line();
  if (!line.starts_with(prefix)) throw std::runtime_error("no address in '" + line + "'");
  return line.substr(prefix.size(), line.find(',') - prefix.size());
}

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

peer::Digest digest_of(const std::vector<http2::Message>& messages) {
  peer::Digest digest;
  for (const auto& message : messages) digest.add(message.error.empty() ? message.body : "unreadable " + message.error);
  return digest;
}

std::string end_of(const http2::Call& call) {
  using http2::EndedBy;
  // The server's clock for the deadline runs too: whose word crosses first is open.
  const bool reset = call.ended_by == EndedBy::client_reset || call.ended_by == EndedBy::server_reset;
  const bool cancelled = reset && call.reset_code == kHttp2Cancel;
  if (call.grpc_status == kGrpcDeadlineExceeded || (cancelled && call.path.ends_with("/Ping"))) return "deadline";
  if (cancelled && call.ended_by == EndedBy::client_reset) return "cancelled";
  if (call.ended_by == EndedBy::server_close) return "connection lost";
  if (call.ended_by != EndedBy::trailers || !call.grpc_status) return std::string(name(call.ended_by));
  return "status " + std::to_string(*call.grpc_status) + " \"" + peer::shown(call.grpc_message.value_or("")) + "\"";
}

}  // namespace

PeerServer::PeerServer(const std::vector<std::string>& options)
    : process_(with({ZTAPE_BINARY_DIR "/tests/peer/peer_server"}, options)), address_(listening_address(process_)) {}

int PeerServer::stop() {
  process_.signal(SIGTERM);
  return process_.wait();
}

ProxyProcess::ProxyProcess(const std::string& upstream, const std::string& capture,
                           const std::vector<std::string>& options, const std::string& listen)
    : process_(with(
          {ztape(), "proxy", "--upstream", upstream.find("://") == std::string::npos ? "http://" + upstream : upstream,
           "--listen", listen, "-w", capture},
          options)),
      address_(listening_address(process_)) {}

uint64_t ProxyProcess::peak_resident_bytes() const {
  std::ifstream status("/proc/" + std::to_string(process_.pid()) + "/status");
  for (std::string word; status >> word;) {
    uint64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  }
  throw std::runtime_error("no VmHWM: the proxy is gone");
}

int ProxyProcess::stop() {
  process_.signal(SIGINT);
  return process_.wait();
}

Finished run_client(const std::string& address, const std::string& scenario, const std::string& ca) {
  return run(
      {"env", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH=" + ca, ZTAPE_BINARY_DIR "/tests/peer/peer_client", address, scenario});
}

http2::RecordedCapture read_recording(const std::string& path) {
  auto capture = http2::read_capture(path, {.keep_bodies = true, .keep_frames = true});
  if (!capture) throw std::runtime_error(capture.error().message);
  return std::move(*capture);
}

std::vector<std::string> call_lines(const std::string& client_output) {
  std::vector<std::string> lines;
  std::istringstream text(client_output);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("call ")) lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> expected_lines(const std::string& client_output) {
  auto lines = call_lines(client_output);
  for (auto& line : lines) {
    const auto at = line.rfind("| status ") + 2;
    switch (std::stoi(line.substr(at + sizeof("status")))) {
      case kGrpcCancelled: line.replace(at, std::string::npos, "cancelled"); break;
      case kGrpcDeadlineExceeded: line.replace(at, std::string::npos, "deadline"); break;
      case kGrpcUnavailable: line.replace(at, std::string::npos, "connection lost"); break;
      default: break;
    }
  }
  return lines;
}

std::vector<std::string> recorded_lines(const http2::RecordedCapture& capture) {
  std::vector<std::string> lines;
  for (const auto& connection : capture.connections) {
    for (const auto& call : connection.calls) {
      lines.push_back("call " + call.path + " | requests " + digest_of(call.requests).text() + " | responses " +
                      digest_of(call.responses).text() + " | " + end_of(call));
    }
  }
  return lines;
}

}  // namespace ztape::test
