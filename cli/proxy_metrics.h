// `--stats-listen`: the proxy's metrics, made beside the loop and served on it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/address.h"
#include "net/http_page.h"
#include "net/loop.h"
#include "proto/error.h"
#include "proxy/live_facts.h"

namespace ztape::cli {

class ProxyMetrics {
 public:
  // At the first of the addresses that can be used. Errors: address.
  static Result<std::unique_ptr<ProxyMetrics>> listen(net::Loop& loop,
                                                      const std::vector<net::SocketAddress>& addresses);
  ~ProxyMetrics();
  ProxyMetrics(const ProxyMetrics&) = delete;
  ProxyMetrics& operator=(const ProxyMetrics&) = delete;

  // Before the loop runs. `look` is called on the loop's thread, and not after this object's end.
  void tell(std::function<proxy::LiveFacts()> look);

  [[nodiscard]] std::string url() const;

 private:
  struct Desk;
  explicit ProxyMetrics(std::shared_ptr<Desk> desk);
  std::shared_ptr<Desk> desk_;
  std::unique_ptr<net::HttpPage> page_;
};

}  // namespace ztape::cli
