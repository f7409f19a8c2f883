#include "http2/http1_reader.h"

#include <http_parser.h>

#include <algorithm>
#include <deque>

namespace ztape::http2 {
namespace {

// A peer may send requests and never read an answer.
constexpr std::size_t kMaxUnanswered = 10'000;
constexpr std::size_t kMaxHeldBytes = 256 * 1024;
constexpr int kSwitchingProtocols = 101;

}  // namespace

struct Http1Reader::Impl {
  struct Side {
    Direction direction;
    Impl* owner;
    http_parser parser{};
    Http1Head head;
    bool in_value = false;  // the last piece of a field was of its value
    bool whole = false;     // the last message
  };

  explicit Impl(Http1Sink& with) : sink(with) {
    for (const Direction direction : kDirections) {
      Side& side = sides[index(direction)];
      side.direction = direction;
      side.owner = this;
      http_parser_init(&side.parser, direction == Direction::client_to_server ? HTTP_REQUEST : HTTP_RESPONSE);
      side.parser.data = &side;
    }
  }

  static Side& of(http_parser* parser) { return *static_cast<Side*>(parser->data); }

  static int on_message_begin(http_parser* parser) {
    Side& side = of(parser);
    side.head = {};
    side.in_value = false;
    side.whole = false;
    return 0;
  }
  static int on_url(http_parser* parser, const char* at, std::size_t length) {
    of(parser).head.target.append(at, length);
    return 0;
  }
  static int on_header_field(http_parser* parser, const char* at, std::size_t length) {
    Side& side = of(parser);
    if (side.in_value || side.head.fields.empty()) side.head.fields.emplace_back();
    side.in_value = false;
    side.head.fields.back().name.append(at, length);
    return 0;
  }
  static int on_header_value(http_parser* parser, const char* at, std::size_t length) {
    Side& side = of(parser);
    side.in_value = true;
    if (!side.head.fields.empty()) side.head.fields.back().value.append(at, length);
    return 0;
  }
  // 1: the message has no body, whatever its fields say; 2: nor does anything of HTTP/1 follow.
  static int on_headers_complete(http_parser* parser) {
    Side& side = of(parser);
    return side.owner->headers_complete(side);
  }
  static int on_body(http_parser* parser, const char* at, std::size_t length) {
    Side& side = of(parser);
    side.owner->sink.on_body(side.direction, {reinterpret_cast<const uint8_t*>(at), length}, side.owner->now_ns);
    return 0;
  }
  static int on_message_complete(http_parser* parser) {
    Side& side = of(parser);
    side.whole = true;
    const bool informational = side.parser.type == HTTP_RESPONSE && side.head.status / 100 == 1;
    if (informational && side.head.status != kSwitchingProtocols) return 0;
    auto& owner = *side.owner;
    owner.sink.on_end(side.direction, owner.now_ns);
    if (owner.waiting && side.parser.type == HTTP_RESPONSE && !side.head.upgrade && owner.unanswered.empty())
      owner.go_on();
    return 0;
  }

  static const http_parser_settings& callbacks() {
    static const http_parser_settings made = [] {
      http_parser_settings settings;
      http_parser_settings_init(&settings);
      settings.on_message_begin = on_message_begin;
      settings.on_url = on_url;
      settings.on_header_field = on_header_field;
      settings.on_header_value = on_header_value;
      settings.on_headers_complete = on_headers_complete;
      settings.on_body = on_body;
      settings.on_message_complete = on_message_complete;
      return settings;
    }();
    return made;
  }

  int headers_complete(Side& side) {
    auto& head = side.head;
    const auto& parser = side.parser;
    head.version = parser.http_major == 1 && parser.http_minor == 0 ? HttpVersion::http1_0 : HttpVersion::http1_1;
    for (auto& field : head.fields) field.name = lower_case(field.name);
    int result = 0;
    if (side.direction == Direction::client_to_server) {
      head.method = http_method_str(static_cast<http_method>(parser.method));
      head.upgrade = parser.upgrade != 0;
      if (unanswered.size() >= kMaxUnanswered) {
        lose(side, "more than 10,000 requests without an answer");
        return -1;
      }
      unanswered.push_back(static_cast<http_method>(parser.method));
    } else {
      head.status = static_cast<int>(parser.status_code);
      head.upgrade = head.status == kSwitchingProtocols;
      if (unanswered.empty()) {
        lose(side, "an answer without a request");
        return -1;
      }
      const auto method = unanswered.front();
      if (head.status / 100 != 1 || head.upgrade) unanswered.pop_front();
      if (method == HTTP_HEAD) result = 1;
      if (head.upgrade || (method == HTTP_CONNECT && head.status / 100 == 2)) result = 2;
      if (head.status / 100 == 1 && !head.upgrade) return result;  // informational: the answer itself follows
    }
    sink.on_head(side.direction, head, now_ns);
    return result;
  }

  void lose(const Side& side, const std::string& reason) {
    if (lost) return;
    lost = true;
    sink.on_lost(side.direction, reason);
  }

  std::size_t read(Side& side, const char* bytes, std::size_t size) {
    if (lost || changed) return 0;
    if (waiting && side.direction == Direction::client_to_server) {
      hold(side, bytes, size);
      return 0;
    }
    const std::size_t taken = http_parser_execute(&side.parser, &callbacks(), bytes, size);
    const auto error = HTTP_PARSER_ERRNO(&side.parser);
    if (error != HPE_OK) {
      lose(side, std::string("not HTTP/1: ") + http_errno_description(error));
    } else if (side.parser.upgrade == 0 || !side.whole) {
      return taken;  // the parser knows of an upgrade before the message that asks for it has ended
    } else if (side.direction == Direction::client_to_server) {
      waiting = true;
      if (taken < size) hold(side, bytes + taken, size - taken);
    } else {
      changed = true;
      held.clear();
    }
    return taken;
  }

  // A request may ask for another protocol and not get it: the answer decides what the bytes behind it are.
  void hold(const Side& side, const char* bytes, std::size_t size) {
    if (held.size() + size > kMaxHeldBytes)
      return lose(side, "more than 256 KiB behind a request to change the protocol");
    held.append(bytes, size);
  }

  // The answer is there, and it keeps to HTTP/1.
  void go_on() {
    waiting = false;
    const auto bytes = std::move(held);
    held.clear();
    if (!bytes.empty()) read(sides[index(Direction::client_to_server)], bytes.data(), bytes.size());
  }

  Http1Sink& sink;
  Side sides[2]{};
  std::deque<http_method> unanswered;
  bool changed = false;  // what follows is another protocol
  bool waiting = false;  // for the answer to a request for another protocol
  std::string held;      // what the client has sent meanwhile
  bool lost = false;
  int64_t now_ns = 0;
};

Http1Reader::Http1Reader(Http1Sink& sink) : impl_(std::make_unique<Impl>(sink)) {}
Http1Reader::~Http1Reader() = default;

std::size_t Http1Reader::read(Direction direction, std::span<const uint8_t> bytes, int64_t time_ns) {
  if (bytes.empty()) return 0;
  impl_->now_ns = time_ns;
  return impl_->read(impl_->sides[index(direction)], reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void Http1Reader::end(Direction direction, int64_t time_ns) {
  impl_->now_ns = time_ns;
  impl_->read(impl_->sides[index(direction)], nullptr, 0);
}

void Http1Reader::gap(Direction direction, const std::string& reason) {
  impl_->lose(impl_->sides[index(direction)], reason);
}

}  // namespace ztape::http2
