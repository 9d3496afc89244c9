// RunGlooRanks: ranks that are threads of one process and connected over gloo, for tests.
//
//   RunGlooRanks(3, {}, [](Communicator& ranks) { ... });
#ifndef PACE_RANKS_GLOO_THREADS_H_
#define PACE_RANKS_GLOO_THREADS_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "ranks/communicator.h"

namespace pace {

inline int64_t FreePort() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  socklen_t length = sizeof(address);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  close(listener);
  return ntohs(address.sin_port);
}

// Each rank on a thread of its own, with a communicator of its own.
inline void RunGlooRanks(int64_t size, const RankOptions& options,
                         const std::function<void(Communicator&)>& body) {
  const int64_t port = FreePort();
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Result<std::unique_ptr<Communicator>> ranks = ConnectRanks(
          {.launcher = "test", .rank = rank, .size = size, .address = "127.0.0.1", .port = port},
          options);
      ASSERT_TRUE(ranks.ok()) << ranks.status().message();
      body(**ranks);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace pace

#endif  // PACE_RANKS_GLOO_THREADS_H_
