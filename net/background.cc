#include "net/background.h"

#include <cstdlib>
#include <memory>
#include <utility>

namespace ztape::net {
namespace {

struct Job {
  uv_work_t request{};
  Loop& loop;
  std::function<void()> work;
  std::function<void()> done;
};

}  // namespace

void run_beside(Loop& loop, std::function<void()> work, std::function<void()> done) {
  auto job = std::make_unique<Job>(Job{.loop = loop, .work = std::move(work), .done = std::move(done)});
  job->request.data = job.get();
  const auto on_thread = [](uv_work_t* request) { static_cast<Job*>(request->data)->work(); };
  const auto on_loop = [](uv_work_t* request, int) {
    const std::unique_ptr<Job> owned(static_cast<Job*>(request->data));
    owned->loop.note_event();
    owned->done();
  };
  auto* raw = job.release();                                                            // freed on the loop
  if (uv_queue_work(loop.raw(), &raw->request, on_thread, on_loop) != 0) std::abort();  // for a missing callback only
}

}  // namespace ztape::net
