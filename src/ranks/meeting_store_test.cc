#include "ranks/meeting_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace pace {
namespace {

// Any bytes, as an id of NCCL has.
std::string AllBytes() {
  std::string bytes;
  for (int i = 0; i < 128; ++i) bytes += static_cast<char>(2 * i);
  return bytes;
}

c10::intrusive_ptr<c10d::Store> ClientOf(const MeetingStore& store) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(store.port());
  options.numWorkers = 3;  // as a group tells it; the server waits for none
  options.timeout = std::chrono::seconds(10);
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

TEST(MeetingStoreTest, ClientsReadWhatWasPut) {
  const Result<std::unique_ptr<MeetingStore>> store = OpenMeetingStore({});
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_GT((*store)->port(), 0);
  ASSERT_TRUE((*store)->Put("g/g//cuda//0", AllBytes()).ok());
  for (int i = 0; i < 3; ++i) {
    const auto client = c10::make_intrusive<c10d::PrefixStore>("g", ClientOf(**store));
    const std::vector<uint8_t> value = client->get("g//cuda//0");
    EXPECT_EQ(std::string(value.begin(), value.end()), AllBytes());
  }
  ASSERT_TRUE((*store)->Remove("g/g//cuda//0").ok());
  ASSERT_TRUE((*store)->Remove("g/g//cuda//0").ok());
  EXPECT_FALSE(ClientOf(**store)->check({"g/g//cuda//0"}));
}

TEST(MeetingStoreTest, APortThatIsInUseIsOneLine) {
  const Result<std::unique_ptr<MeetingStore>> first = OpenMeetingStore({});
  ASSERT_TRUE(first.ok());
  const int64_t port = (*first)->port();
  const Status status = OpenMeetingStore({.port = port}).status();
  EXPECT_EQ(status.message().find(Concat("port ", port, ": the store of meetings")), 0U)
      << status.message();
  EXPECT_NE(status.message().find("in use"), std::string::npos) << status.message();
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
}

TEST(MeetingStoreTest, APortIsFreeAgainWhenTheStoreIsGone) {
  int64_t port = 0;
  {
    const Result<std::unique_ptr<MeetingStore>> store = OpenMeetingStore({});
    ASSERT_TRUE(store.ok());
    port = (*store)->port();
    ASSERT_TRUE((*store)->Put("key", "value").ok());
  }
  const Result<std::unique_ptr<MeetingStore>> again = OpenMeetingStore({.port = port});
  EXPECT_TRUE(again.ok()) << again.status().message();
}

}  // namespace
}  // namespace pace
