#include "replay/wallet.h"

#include <algorithm>
#include <charconv>

#include "http2/call.h"
#include "replay/request_headers.h"

namespace ztape::replay {
namespace {

using http2::EndedBy;

constexpr uint32_t kCancel = 8;  // RFC 9113, section 7
constexpr uint64_t kMaxMessageBytes = 256ull * 1024 * 1024;

std::optional<int> number_of(const std::string* text) {
  if (!text) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

std::string seconds(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", static_cast<double>(ns) / 1e9);
  return text;
}

std::string length_prefixed(const std::string& body) {
  std::string bytes(1, '\0');
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(body.size() >> shift);
  return bytes + body;
}

}  // namespace

struct Wallet::LiveCall {
  LiveCall(uint32_t index, const PlannedCall& call)
      : planned(call), result{.call = index, .answer = ReplayedAnswer(*call.recorded)} {}

  const PlannedCall& planned;
  CallResult result;
  int32_t stream = 0;
  bool half_closed = false;
  bool headers = false;
  std::optional<http2::MessageReader> reader;  // none: the answer is not gRPC
  std::string fault;                           // why the answer cannot be judged, or ""
  MonotonicTime last_progress;
  std::optional<MonotonicTime> deadline;  // the recorded grpc-timeout, where the wallet had not met it
};

Wallet::Wallet(net::Loop& loop, uint64_t number, const Target& target, const Session& session,
               const WalletOptions& options, std::vector<bool> left_out, Sink& sink)
    : loop_(loop),
      number_(number),
      target_(target),
      session_(session),
      options_(options),
      left_out_(std::move(left_out)),
      sink_(sink),
      scheduler_(session, options.pacing, left_out_),
      timer_(loop),
      live_(session.calls.size()),
      over_(session.calls.size()) {
  for (std::size_t i = 0; i < over_.size(); ++i) {
    over_[i] = session.calls[i].skipped() || (!left_out_.empty() && left_out_[i]);
  }
}

Wallet::~Wallet() = default;

void Wallet::start() {
  connect_start_ = net::monotonic_now();
  connector_ =
      std::make_unique<net::Connector>(loop_, target_.addresses, net::SocketOptions{}, options_.connect_timeout_ns,
                                       [this](auto connection) { on_connected(std::move(connection)); });
}

void Wallet::on_connected(Result<std::unique_ptr<net::TcpConnection>> connection) {
  now_ = net::monotonic_now();
  if (!connection) return fail_the_rest(connection.error().line());
  result_.connect_ns = now_ - connect_start_;
  connection_ = std::move(*connection);
  const auto& recorded = *session_.connection;
  auto client = ClientSession::create(recorded.client_settings, recorded.client_window_increment, *this);
  if (!client) return fail_the_rest(client.error().message);
  client_ = std::move(*client);
  connection_->set_handler(this);
  connection_->start_reading();
  scheduler_.connected(now_);
  pump();
}

void Wallet::on_read(net::Slice bytes, MonotonicTime time) {
  if (done_) return;
  now_ = time;
  const auto received = client_->receive(bytes.span());
  if (!received) {
    flush();
    return fail_the_rest(received.error().message);
  }
  pump();
}

void Wallet::on_eof(MonotonicTime time) {
  now_ = time;
  if (!done_) fail_the_rest(going_away_.empty() ? "the server closed the connection" : going_away_);
}

void Wallet::on_error(const std::string& system_error, MonotonicTime time) {
  now_ = time;
  if (!done_) fail_the_rest("connection lost: " + system_error);
}

// Takes every step that is due, sends, and sleeps until the next one.
void Wallet::pump() {
  while (const auto action = scheduler_.take_due(net::monotonic_now())) take(*action);
  flush();
  if (done_) return;
  if (!client_->broken().empty()) return fail_the_rest(client_->broken());
  if (scheduler_.done()) return done();
  if (!going_away_.empty() && open_calls_ == 0) return fail_the_rest(going_away_);
  // Looks at calls that are over must not wake anybody.
  while (!timeouts_.empty() && !live_[timeouts_.begin()->second]) timeouts_.erase(timeouts_.begin());
  arm_long_lived();
  arm_timer();
}

void Wallet::take(const Action& action) {
  if (action.kind == StepKind::start) return start_call(action);
  auto& live = live_[action.call];
  if (!live) return;
  switch (action.kind) {
    case StepKind::start: break;
    case StepKind::message:
      client_->send(live->stream, length_prefixed(live->planned.recorded->requests[action.message].body));
      break;
    case StepKind::half_close:
      live->half_closed = true;
      client_->half_close(live->stream);
      break;
    case StepKind::cancel:
      now_ = net::monotonic_now();
      client_->reset(live->stream, live->planned.recorded->reset_code.value_or(kCancel));
      live->result.answer.outcome.ended_by = EndedBy::client_reset;
      finish_call(action.call, live->fault);
      break;
  }
}

void Wallet::start_call(const Action& action) {
  now_ = net::monotonic_now();
  if (!going_away_.empty()) return never_sent(action.call, "not sent: " + going_away_);
  const auto& planned = session_.calls[action.call];
  const auto stream = client_->start(request_headers(planned.recorded->request_headers, target_.url.authority()));
  if (!stream) return never_sent(action.call, "not sent: " + stream.error().message);
  auto live = std::make_unique<LiveCall>(action.call, planned);
  live->stream = *stream;
  live->result.due = action.due;
  live->last_progress = now_;
  if (planned.grpc_timeout_ns && !planned.deadline_ns && *planned.grpc_timeout_ns < INT64_MAX - now_.ns) {
    live->deadline = MonotonicTime{now_.ns + *planned.grpc_timeout_ns};
    timeouts_.emplace(*live->deadline, action.call);
  }
  if (!planned.long_lived && !planned.deadline_ns) {
    timeouts_.emplace(MonotonicTime{now_.ns + options_.call_timeout_ns}, action.call);
  }
  calls_by_stream_.emplace(*stream, action.call);
  live_[action.call] = std::move(live);
  ++open_calls_;
}

Wallet::LiveCall* Wallet::find(int32_t stream) {
  const auto found = calls_by_stream_.find(stream);
  return found == calls_by_stream_.end() ? nullptr : live_[found->second].get();
}

void Wallet::on_request_sent(int32_t stream) {
  auto* live = find(stream);
  if (!live) return;
  live->result.sent = net::monotonic_now();
  sink_.on_call_sent(*live->result.sent);
}

void Wallet::on_headers(int32_t stream, const http2::HeaderList& fields, bool end_stream) {
  auto* live = find(stream);
  if (!live) return;
  live->last_progress = now_;
  auto& outcome = live->result.answer.outcome;
  const auto status = number_of(http2::find_header(fields, ":status"));
  if (status && *status < 200) return;  // informational
  if (!live->headers) {
    live->headers = true;
    live->result.first_byte = now_;
    outcome.http_status = status;
    const auto* type = http2::find_header(fields, "content-type");
    if (type && type->starts_with("application/grpc")) {
      const auto* encoding = http2::find_header(fields, "grpc-encoding");
      live->reader.emplace(true, kMaxMessageBytes, encoding ? *encoding : "identity");
    }
    scheduler_.response_headers(live->result.call, now_);
  }
  if (!end_stream) return;
  outcome.grpc_status = number_of(http2::find_header(fields, "grpc-status"));
  if (const auto* text = http2::find_header(fields, "grpc-message"))
    outcome.grpc_message = http2::percent_decode(*text);
  answered(*live);
}

void Wallet::on_data(int32_t stream, std::span<const uint8_t> bytes) {
  auto* live = find(stream);
  if (!live) return;
  live->last_progress = now_;
  if (!live->reader) return;
  const auto& fault = live->reader->read(bytes, now_.ns, [&](http2::Message&& message) {
    if (!message.error.empty() && live->fault.empty()) live->fault = "a message could not be read: " + message.error;
    live->result.last_message = now_;
    live->result.answer.add_message(std::move(message.body));
    scheduler_.response_message(live->result.call, now_);
  });
  if (!fault.empty() && live->fault.empty()) live->fault = fault;
}

void Wallet::on_data_end(int32_t stream) {
  if (auto* live = find(stream)) answered(*live);
}

// The server ended its side: the outcome is known, whatever the wallet still had to send.
void Wallet::answered(LiveCall& live) {
  live.result.answer.outcome.ended_by = EndedBy::trailers;
  if (live.reader && live.reader->tail_bytes() > 0 && live.fault.empty()) {
    live.fault = "the answer ended within a message";
  }
  if (!live.half_closed) client_->reset(live.stream, kCancel);
  finish_call(live.result.call, live.fault);
}

void Wallet::on_closed(int32_t stream, uint32_t error_code, bool reset_by_server) {
  auto* live = find(stream);
  if (!live) return;  // it was over before
  if (!reset_by_server) {
    return finish_call(live->result.call, "the answer broke HTTP/2 (" + http2::error_code_name(error_code) + ")");
  }
  auto& outcome = live->result.answer.outcome;
  outcome.ended_by = EndedBy::server_reset;
  outcome.reset_code = error_code;
  const auto& recorded = *live->planned.recorded;
  const bool as_recorded = recorded.ended_by == EndedBy::server_reset && recorded.reset_code == error_code;
  const bool cut = live->planned.cut() && error_code == kCancel;
  finish_call(live->result.call,
              as_recorded || cut ? live->fault : "reset by the server (" + http2::error_code_name(error_code) + ")");
}

void Wallet::on_goaway(int32_t last_stream, uint32_t error_code, const std::string& debug_text) {
  if (going_away_.empty()) {
    going_away_ = "the server sent GOAWAY (" + http2::error_code_name(error_code) +
                  (debug_text.empty() ? "" : ": " + debug_text) + ")";
  }
  // Those it left out, and those that still wait for their turn to be sent.
  std::vector<uint32_t> lost;
  for (const auto& [stream, call] : calls_by_stream_) {
    if (stream > last_stream || !live_[call]->result.sent) lost.push_back(call);
  }
  for (const auto call : lost) finish_call(call, going_away_);
}

void Wallet::finish_call(uint32_t call, const std::string& failure) {
  auto live = std::move(live_[call]);
  calls_by_stream_.erase(live->stream);
  over_[call] = true;
  --open_calls_;
  live->result.failure = failure;
  live->result.end = now_;
  scheduler_.ended(call, now_);
  sink_.on_call_over(number_, std::move(live->result));
}

void Wallet::never_sent(uint32_t call, const std::string& failure) {
  over_[call] = true;
  CallResult result{.call = call, .answer = ReplayedAnswer(*session_.calls[call].recorded)};
  result.failure = failure;
  result.end = now_;
  scheduler_.ended(call, now_);
  sink_.on_call_over(number_, std::move(result));
}

void Wallet::fail_the_rest(const std::string& reason) {
  if (result_.failure.empty()) result_.failure = reason;
  for (uint32_t call = 0; call < over_.size(); ++call) {
    if (over_[call]) continue;
    if (live_[call]) {
      finish_call(call, reason);
    } else {
      never_sent(call, "not sent: " + reason);
    }
  }
  done();
}

void Wallet::expire_calls() {
  now_ = net::monotonic_now();
  while (!timeouts_.empty() && timeouts_.begin()->first <= now_) {
    const auto call = timeouts_.begin()->second;
    timeouts_.erase(timeouts_.begin());
    const auto& live = live_[call];
    if (!live) continue;
    std::string failure;
    if (live->deadline && *live->deadline <= now_) {
      failure = "the wallet's own deadline passed (grpc-timeout " + seconds(*live->planned.grpc_timeout_ns) + ")";
    } else if (const MonotonicTime next{live->last_progress.ns + options_.call_timeout_ns}; next <= now_) {
      failure = "nothing came for " + seconds(options_.call_timeout_ns);
    } else {
      timeouts_.emplace(next, call);
      continue;
    }
    client_->reset(live->stream, kCancel);
    finish_call(call, failure);
  }
}

// Long-lived calls may stay open as long as the session has something else to do.
void Wallet::arm_long_lived() {
  if (!timeouts_.empty() || scheduler_.next_due()) return;
  for (uint32_t call = 0; call < live_.size(); ++call) {
    if (!live_[call]) continue;
    live_[call]->last_progress = std::max(live_[call]->last_progress, net::monotonic_now());
    timeouts_.emplace(MonotonicTime{live_[call]->last_progress.ns + options_.call_timeout_ns}, call);
  }
}

void Wallet::arm_timer() {
  auto next = scheduler_.next_due();
  if (!timeouts_.empty() && (!next || timeouts_.begin()->first < *next)) next = timeouts_.begin()->first;
  if (!next) return timer_.cancel();
  timer_.start_at(*next, [this] {
    expire_calls();
    pump();
  });
}

void Wallet::flush() {
  if (auto bytes = client_->take_output(); !bytes.empty()) connection_->write(std::move(bytes));
}

void Wallet::done() {
  done_ = true;
  timer_.cancel();
  if (client_ && result_.failure.empty()) {
    client_->goaway();
    flush();
  }
  if (connection_) connection_->close();
  sink_.on_wallet_done(number_, result_);
}

}  // namespace ztape::replay
