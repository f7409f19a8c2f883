#include "proxy/record_queue.h"

#include <gtest/gtest.h>

#include <thread>

#include "proto/capture.pb.h"

namespace ztape::proxy {
namespace {

QueuedRecord chunk(uint64_t offset, std::size_t size) {
  QueuedRecord record;
  record.offset = offset;
  record.bytes = net::Slice::copy_of(std::string(size, 'x'));
  return record;
}

TEST(RecordQueue, GivesBackWhatWasPushedInOrder) {
  RecordQueue queue(1 << 20);
  for (uint64_t i = 0; i < 5; ++i) queue.push(chunk(i, 10));
  queue.finish();
  std::vector<QueuedRecord> batch;
  ASSERT_TRUE(queue.take(batch, true));
  ASSERT_EQ(batch.size(), 5u);
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(batch[i].offset, i);
  batch.clear();
  EXPECT_FALSE(queue.take(batch, true));
}

TEST(RecordQueue, CountsWhatWaitsAndWhatIsInWorkUntilItIsReleased) {
  RecordQueue queue(1000);
  const auto cost = chunk(0, 600).cost_bytes();
  queue.push(chunk(0, 600));
  EXPECT_FALSE(queue.fits(600));
  queue.finish();
  std::vector<QueuedRecord> batch;
  ASSERT_TRUE(queue.take(batch, false));
  EXPECT_EQ(queue.bytes_in_use(), cost);
  queue.release(cost);
  EXPECT_EQ(queue.bytes_in_use(), 0u);
  EXPECT_TRUE(queue.fits(600));
}

TEST(RecordQueue, AnIdleReaderIsWokenByOneRecord) {
  RecordQueue queue(1 << 20);
  std::vector<QueuedRecord> batch;
  std::thread reader([&] { EXPECT_TRUE(queue.take(batch, true)); });
  queue.push(chunk(7, 1));
  reader.join();
  ASSERT_EQ(batch.size(), 1u);
  EXPECT_EQ(batch[0].offset, 7u);
}

TEST(RecordQueue, NothingIsLostBetweenTwoThreads) {
  RecordQueue queue(1 << 20);
  constexpr uint64_t kRecords = 50'000;
  uint64_t next = 0;
  std::thread reader([&] {
    std::vector<QueuedRecord> batch;
    while (queue.take(batch, next % 2 == 0)) {
      for (auto& record : batch) {
        ASSERT_EQ(record.offset, next++);
        queue.release(record.cost_bytes());
      }
      batch.clear();
    }
  });
  for (uint64_t i = 0; i < kRecords; ++i) queue.push(chunk(i, i % 100));
  queue.finish();
  reader.join();
  EXPECT_EQ(next, kRecords);
  EXPECT_EQ(queue.bytes_in_use(), 0u);
}

}  // namespace
}  // namespace ztape::proxy
