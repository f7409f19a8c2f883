// A virtual wallet: plays one session once, on one connection of its own, against one target.
//
// Joins the scheduler (when), the client session (HTTP/2) and a TCP connection; knows no statistics. One loop, its
// thread. It never reconnects: after a GOAWAY or a lost connection what is left of the session has failed, with that
// reason.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http2/message_reader.h"
#include "net/tcp.h"
#include "replay/client_session.h"
#include "replay/compare.h"
#include "replay/plan.h"
#include "replay/scheduler.h"

namespace ztape::replay {

struct Target {
  std::string name;
  net::Url url;
  std::vector<net::SocketAddress> addresses;
};

struct WalletOptions {
  Pacing pacing;
  int64_t connect_timeout_ns = 5'000'000'000;
  // A call that brings nothing for so long has failed. A long-lived one only once all else of the session is done.
  int64_t call_timeout_ns = 60'000'000'000;
};

// How one call went. `failure` is "" when it was answered, or was cancelled where the wallet had cancelled it.
struct CallResult {
  uint32_t call = 0;  // index into Session::calls
  ReplayedAnswer answer;
  std::string failure = {};
  // Of a call that was never sent, only `end` is there.
  std::optional<MonotonicTime> due = {};         // when it should have started
  std::optional<MonotonicTime> sent = {};        // its HEADERS went to the kernel
  std::optional<MonotonicTime> first_byte = {};  // the answer's headers came
  std::optional<MonotonicTime> last_message = {};
  MonotonicTime end = {};
};

struct ConnectionResult {
  std::optional<int64_t> connect_ns;  // absent: no connection
  std::string failure;                // why it ended before the session did, or ""
};

class Wallet final : private net::TcpConnection::Handler, private ClientSession::Handler {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void on_call_sent(MonotonicTime now) = 0;
    // Each call that is part of this run, once.
    virtual void on_call_over(uint64_t wallet, CallResult&& result) = 0;
    // The last callback. The wallet must not be destroyed from within.
    virtual void on_wallet_done(uint64_t wallet, const ConnectionResult& result) = 0;
  };

  // `number` is what the sink knows it by. References must outlive the wallet. `left_out`: see Scheduler.
  Wallet(net::Loop& loop, uint64_t number, const Target& target, const Session& session, const WalletOptions& options,
         std::vector<bool> left_out, Sink& sink);
  ~Wallet() override;

  void start();

 private:
  struct LiveCall;

  // net::TcpConnection::Handler
  void on_read(net::Slice bytes, MonotonicTime time) override;
  void on_eof(MonotonicTime time) override;
  void on_error(const std::string& system_error, MonotonicTime time) override;

  // ClientSession::Handler
  void on_request_sent(int32_t stream) override;
  void on_headers(int32_t stream, const http2::HeaderList& fields, bool end_stream) override;
  void on_data(int32_t stream, std::span<const uint8_t> bytes) override;
  void on_data_end(int32_t stream) override;
  void on_closed(int32_t stream, uint32_t error_code, bool reset_by_server) override;
  void on_goaway(int32_t last_stream, uint32_t error_code, const std::string& debug_text) override;

  void on_connected(Result<std::unique_ptr<net::TcpConnection>> connection);
  void pump();
  void take(const Action& action);
  void start_call(const Action& action);
  void answered(LiveCall& live);
  void finish_call(uint32_t call, const std::string& failure);
  void never_sent(uint32_t call, const std::string& failure);
  void fail_the_rest(const std::string& reason);
  void expire_calls();
  void arm_timer();
  void arm_long_lived();
  void flush();
  void done();
  LiveCall* find(int32_t stream);

  net::Loop& loop_;
  uint64_t number_;
  const Target& target_;
  const Session& session_;
  WalletOptions options_;
  std::vector<bool> left_out_;
  Sink& sink_;
  Scheduler scheduler_;
  net::Timer timer_;
  std::unique_ptr<net::Connector> connector_;
  std::unique_ptr<net::TcpConnection> connection_;
  std::unique_ptr<ClientSession> client_;
  std::vector<std::unique_ptr<LiveCall>> live_;  // by call; nullptr: not started, or over
  std::vector<bool> over_;                       // by call
  std::map<int32_t, uint32_t> calls_by_stream_;
  std::multimap<MonotonicTime, uint32_t> timeouts_;  // when to look whether a call still brings something
  std::size_t open_calls_ = 0;
  std::string going_away_;  // why no call can start any more, or ""
  ConnectionResult result_;
  MonotonicTime connect_start_;
  MonotonicTime now_;  // of the event that is being handled
  bool done_ = false;
};

}  // namespace ztape::replay
