#include "cli/proxy_metrics.h"

#include <utility>

#include "net/background.h"
#include "report/metrics_page.h"

namespace ztape::cli {

// One page at a time: who asks while one is made gets that one. Outlives its owner while one is made.
struct ProxyMetrics::Desk : std::enable_shared_from_this<Desk> {
  explicit Desk(net::Loop& on) : loop(on) {}

  net::Loop& loop;
  const WallTime started = net::wall_now();
  std::function<proxy::LiveFacts()> look;
  std::vector<net::HttpPage::Answer> waiting;

  void asked(net::HttpPage::Answer answer) {
    waiting.push_back(std::move(answer));
    if (waiting.size() > 1) return;
    // Thousands of series take milliseconds to write out: not on the loop.
    const auto facts = std::make_shared<proxy::LiveFacts>(look());
    const auto text = std::make_shared<std::string>();
    const auto make = [facts, text, at = started] {
      *text =
          report::metrics_page(*facts, {.version = ZTAPE_VERSION, .started = at, .process = report::process_figures()});
    };
    net::run_beside(loop, make, [self = shared_from_this(), text] {
      for (const auto& to : std::exchange(self->waiting, {})) to(*text);
    });
  }
};

ProxyMetrics::ProxyMetrics(std::shared_ptr<Desk> desk) : desk_(std::move(desk)) {}

ProxyMetrics::~ProxyMetrics() = default;

Result<std::unique_ptr<ProxyMetrics>> ProxyMetrics::listen(net::Loop& loop,
                                                           const std::vector<net::SocketAddress>& addresses) {
  std::unique_ptr<ProxyMetrics> metrics(new ProxyMetrics(std::make_shared<Desk>(loop)));
  const auto on_asked = [desk = metrics->desk_.get()](net::HttpPage::Answer answer) { desk->asked(std::move(answer)); };
  Error error{.code = ErrorCode::address, .message = "no address to listen on", .subject = "--stats-listen"};
  for (const auto& address : addresses) {
    auto page = net::HttpPage::listen(loop, address, on_asked, {.content_type = report::kMetricsContentType});
    if (page) {
      metrics->page_ = std::move(*page);
      return metrics;
    }
    error = std::move(page.error());
  }
  return std::unexpected(std::move(error));
}

void ProxyMetrics::tell(std::function<proxy::LiveFacts()> look) {
  desk_->look = std::move(look);
}

std::string ProxyMetrics::url() const {
  return "http://" + page_->local_text() + "/metrics";
}

}  // namespace ztape::cli
