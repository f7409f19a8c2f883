// The peers as processes, the proxy between them, and what it recorded, in the words of the client's own output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "http2/recorded_connection.h"
#include "tests/support/child_process.h"

namespace ztape::test {

class PeerServer {
 public:
  explicit PeerServer(const std::vector<std::string>& options = {});
  [[nodiscard]] const std::string& address() const { return address_; }
  // A clean end.
  int stop();

 private:
  ChildProcess process_;
  std::string address_;
};

class ProxyProcess {
 public:
  // Records to `capture`.
  ProxyProcess(const std::string& upstream, const std::string& capture, const std::vector<std::string>& options = {},
               const std::string& listen = "127.0.0.1:0");
  [[nodiscard]] const std::string& address() const { return address_; }
  // The most memory it ever had resident: VmHWM of /proc/PID/status.
  [[nodiscard]] uint64_t peak_resident_bytes() const;
  // As Ctrl-C; its exit status.
  int stop();
  // What it has printed.
  [[nodiscard]] std::string output() const { return process_.stdout_text(); }

 private:
  ChildProcess process_;
  std::string address_;
};

// `ca`: the file of the CA that an address with https:// is verified by.
Finished run_client(const std::string& address, const std::string& scenario, const std::string& ca = "");

// With bodies and frames. Throws std::runtime_error.
http2::RecordedCapture read_recording(const std::string& path);

// The client's call lines, without the metadata.
std::vector<std::string> call_lines(const std::string& client_output);
// What the recording has to say of such a call: as the line, but where the client made up the status itself, the end of
// the call stands in its place: "cancelled", "deadline" or "connection lost".
std::vector<std::string> expected_lines(const std::string& client_output);
// The same of what was recorded, connection by connection, in the order of the streams.
std::vector<std::string> recorded_lines(const http2::RecordedCapture& capture);

}  // namespace ztape::test
