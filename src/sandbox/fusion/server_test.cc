#include "sandbox/fusion/server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/test_no_threads.h"
#include "http/client.h"
#include "sandbox/fusion/client.h"

namespace pace {
namespace {

// Answers with what it was given; "wait" waits until its caller is gone.
class FakeRunner final : public ProgramRunner {
 public:
  Result<ProgramResult> Run(const ProgramRequest& request,
                            const Cancellation& cancellation) override {
    ++num_begun;
    ProgramResult result;
    result.return_code = 0;
    result.out = request.code + "|" + request.input;
    result.time = request.timeout.value_or(Seconds(0));
    if (request.code == "fail") return Unavailable("no place");
    while (request.code == "hold" && !released) {
      pollfd waiting{cancellation.descriptor, cancellation.events, 0};
      EXPECT_EQ(::poll(&waiting, 1, 1), 0) << "a client that listens counts as gone";
    }
    if (request.code == "wait") {
      pollfd waiting{cancellation.descriptor, cancellation.events, 0};
      EXPECT_EQ(::poll(&waiting, 1, 30'000), 1) << "nobody hung up";
      result.outcome = ProgramOutcome::kCancelled;
    }
    ++num_ended;
    return result;
  }
  std::atomic<int> num_begun{0};
  std::atomic<int> num_ended{0};
  std::atomic<bool> released{false};
};

class FusionServerTest : public ::testing::Test {
 protected:
  FusionServerTest() {
    FusionServerOptions options;
    options.http.port = 0;
    options.http.max_connections = 32;
    options.http.max_total_bytes = 200'000;
    options.http.patience = Seconds(10);
    options.http.limits = {.max_head_bytes = 2048, .max_body_bytes = 100'000};
    Result<std::unique_ptr<HttpServer>> server = StartFusionServer(options, runner_);
    EXPECT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(server).value();
    url_ = "http://127.0.0.1:" + std::to_string(server_->port());
  }
  std::unique_ptr<FusionClient> Client() {
    Result<std::unique_ptr<FusionClient>> client =
        FusionClient::Make({.url = url_, .retry_pause = Seconds(0.01)});
    EXPECT_TRUE(client.ok()) << client.status().message();
    return std::move(client).value();
  }
  HttpMessage Call(const HttpCall& call) {
    const Result<HttpMessage> answer = CallHttp(*ReadHttpUrl(url_), call, Seconds(10), {});
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    return answer.ok() ? *answer : HttpMessage();
  }
  // A connection that speaks for itself.
  FileDescriptor Connect() {
    FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return socket;
  }
  static void Send(const FileDescriptor& socket, const std::string& text) {
    EXPECT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  static std::string ReceiveUntil(const FileDescriptor& socket, const std::string& end) {
    std::string text;
    char buffer[4096];
    while (text.find(end) == std::string::npos) {
      const ssize_t count = ::recv(socket.get(), buffer, sizeof(buffer), 0);
      if (count <= 0) break;
      text.append(buffer, static_cast<size_t>(count));
    }
    return text;
  }

  FakeRunner runner_;
  std::unique_ptr<HttpServer> server_;
  std::string url_;
};

TEST_F(FusionServerTest, AnswersAPing) {
  EXPECT_TRUE(Client()->Ping().ok());
  EXPECT_EQ(Call({.method = "GET", .target = "/v1/ping"}).body, "\"pong\"");
}

TEST_F(FusionServerTest, RunsAProgramForItsClient) {
  const Result<ProgramResult> result = Client()->Run({.code = "c", .input = "i"}, {});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->out, "c|i");
  EXPECT_EQ(result->time.count(), 30) << "the client's own timeout";
}

TEST_F(FusionServerTest, WhatARequestMayAskForIsBounded) {
  const HttpMessage answer =
      Call({.target = "/run_code",
            .body = R"({"code": "", "language": "python", "run_timeout": 3000})"});
  EXPECT_NE(answer.body.find("\"execution_time\":300,"), std::string::npos) << answer.body;
}

TEST_F(FusionServerTest, MistakesHaveTheirStatus) {
  EXPECT_EQ(Call({.target = "/run_code", .body = "{}"}).status, 422);
  EXPECT_EQ(Call({.method = "GET", .target = "/run_code"}).status, 405);
  EXPECT_EQ(Call({.target = "/run_jupyter"}).status, 404);
  const HttpMessage other =
      Call({.target = "/run_code", .body = R"({"code": "", "language": "cpp"})"});
  EXPECT_EQ(other.status, 200);
  EXPECT_NE(other.body.find("SandboxError"), std::string::npos);
  EXPECT_EQ(runner_.num_begun, 0);
}

TEST_F(FusionServerTest, AFailureOfTheSandboxReachesTheCaller) {
  const Result<ProgramResult> result = Client()->Run({.code = "fail"}, {});
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("no place"), std::string::npos);
}

TEST_F(FusionServerTest, AConnectionServesManyRequests) {
  const FileDescriptor socket = Connect();
  for (int round = 0; round < 3; ++round) {
    Send(socket, "GET /v1/ping HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(ReceiveUntil(socket, "pong\"").starts_with("HTTP/1.1 200 OK\r\n"));
  }
}

TEST_F(FusionServerTest, AClientThatVanishesEndsItsProgram) {
  {
    const FileDescriptor socket = Connect();
    Send(socket, HttpRequestText("POST", "127.0.0.1", "/run_code",
                                 R"({"code": "wait", "language": "python"})"));
    while (runner_.num_begun == 0) std::this_thread::yield();
  }
  while (runner_.num_ended == 0) std::this_thread::yield();
  EXPECT_TRUE(Client()->Ping().ok());
}

TEST_F(FusionServerTest, AClientThatWillSendNoMoreGetsItsAnswer) {
  const FileDescriptor socket = Connect();
  Send(socket, HttpRequestText("POST", "127.0.0.1", "/run_code",
                               R"({"code": "hold", "language": "python"})"));
  while (runner_.num_begun == 0) std::this_thread::yield();
  ASSERT_EQ(::shutdown(socket.get(), SHUT_WR), 0);
  // The server asks whether anybody is left: its interim answer shows that it has seen it.
  EXPECT_EQ(ReceiveUntil(socket, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  runner_.released = true;
  const std::string answer = ReceiveUntil(socket, "}");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_NE(answer.find("hold|"), std::string::npos) << answer;
}

TEST_F(FusionServerTest, JunkAfterARequestDoesNotLoseItsAnswer) {
  const FileDescriptor socket = Connect();
  Send(socket, "GET /v1/ping HTTP/1.1\r\n\r\njunk\r\n\r\n");
  const std::string answers = ReceiveUntil(socket, "malformed");
  EXPECT_TRUE(answers.starts_with("HTTP/1.1 200 OK\r\n")) << answers;
  EXPECT_NE(answers.find("HTTP/1.1 400 "), std::string::npos) << answers;
}

TEST_F(FusionServerTest, RequestsOfWebPagesAreRefused) {
  for (const char* headers :
       {"Host: 127.0.0.1\r\nOrigin: http://evil.example\r\n", "Host: evil.example\r\n"}) {
    const FileDescriptor socket = Connect();
    Send(socket, std::string("POST /run_code HTTP/1.1\r\n") + headers +
                     "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}");
    EXPECT_TRUE(ReceiveUntil(socket, "}").starts_with("HTTP/1.1 403 ")) << headers;
  }
  EXPECT_EQ(runner_.num_begun, 0);
}

TEST_F(FusionServerTest, WithoutAThreadAConnectionIsRefusedAndTheServerStays) {
  {
    const NoNewThreads none;
    for (int count = 0; count < 5; ++count) {
      EXPECT_TRUE(ReceiveUntil(Connect(), "}").starts_with("HTTP/1.1 503 "));
    }
  }
  EXPECT_TRUE(Client()->Ping().ok());
}

TEST_F(FusionServerTest, UnfinishedRequestsAreBoundTogether) {
  // Each keeps to its own limit of 100,000 bytes; all together may hold 200,000 beyond the
  // first 64 KiB of each.
  std::vector<FileDescriptor> sockets;
  for (int count = 0; count < 10; ++count) {
    sockets.push_back(Connect());
    Send(sockets.back(),
         "POST /run_code HTTP/1.1\r\nContent-Length: 99000\r\n\r\n" + std::string(98'999, 'x'));
  }
  const size_t num_held = 200'000 / (98'999 - 65'536);
  while (sockets.size() > num_held) {
    std::vector<pollfd> waiting;
    for (const FileDescriptor& socket : sockets) waiting.push_back({socket.get(), POLLIN, 0});
    ASSERT_GT(::poll(waiting.data(), waiting.size(), 30'000), 0) << "nobody is refused";
    for (size_t index = waiting.size(); index-- > 0;) {
      if (waiting[index].revents == 0) continue;
      EXPECT_TRUE(ReceiveUntil(sockets[index], "}").starts_with("HTTP/1.1 503 "));
      sockets.erase(sockets.begin() + static_cast<ptrdiff_t>(index));
    }
  }
  EXPECT_TRUE(Client()->Ping().ok()) << "small requests go through all the same";
  for (const FileDescriptor& socket : sockets) {
    Send(socket, "x");
    EXPECT_TRUE(ReceiveUntil(socket, "}").starts_with("HTTP/1.1 422 "));
  }
}

TEST_F(FusionServerTest, ACallerMayGiveUp) {
  const FileDescriptor gone(::eventfd(0, EFD_CLOEXEC));
  std::thread later([this, &gone] {
    while (runner_.num_begun == 0) std::this_thread::yield();
    ::eventfd_write(gone.get(), 1);
  });
  const Result<ProgramResult> result = Client()->Run({.code = "wait"}, {.descriptor = gone.get()});
  later.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->outcome, ProgramOutcome::kCancelled);
  while (runner_.num_ended == 0) std::this_thread::yield();
}

TEST_F(FusionServerTest, TheServersEndEndsItsPrograms) {
  const FileDescriptor socket = Connect();
  Send(socket, HttpRequestText("POST", "127.0.0.1", "/run_code",
                               R"({"code": "wait", "language": "python"})"));
  while (runner_.num_begun == 0) std::this_thread::yield();
  server_.reset();
  EXPECT_EQ(runner_.num_ended, 1);
}

TEST_F(FusionServerTest, NonsenseIsAnsweredAndForgotten) {
  for (const std::string& text :
       {std::string("nonsense\r\n\r\n"), std::string(5000, 'x'),
        std::string("POST /run_code HTTP/1.1\r\nContent-Length: 999999\r\n\r\n")}) {
    const FileDescriptor socket = Connect();
    Send(socket, text);
    EXPECT_TRUE(ReceiveUntil(socket, "}").starts_with("HTTP/1.1 400 ")) << text.substr(0, 40);
  }
  EXPECT_TRUE(Client()->Ping().ok());
}

TEST_F(FusionServerTest, ConnectionsAreCounted) {
  std::vector<FileDescriptor> sockets;
  for (int count = 0; count < 32; ++count) {
    sockets.push_back(Connect());
    Send(sockets.back(), "GET /v1/ping HTTP/1.1\r\n\r\n");
    ReceiveUntil(sockets.back(), "pong\"");
  }
  EXPECT_NE(ReceiveUntil(Connect(), "}").find("503"), std::string::npos);
  sockets.clear();
}

TEST_F(FusionServerTest, ManyAtOnce) {
  const std::unique_ptr<FusionClient> client = Client();
  std::vector<std::thread> callers;
  std::atomic<int> num_right{0};
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 20; ++round) {
        const std::string code = std::to_string(caller * 100 + round);
        const Result<ProgramResult> result = client->Run({.code = code}, {});
        if (result.ok() && result->out == code + "|") ++num_right;
        EXPECT_TRUE(result.ok()) << result.status().message();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(num_right, 160);
}

TEST(FusionClientTest, Tries504AgainAndNothingElse) {
  for (const auto& [status, expected] : {std::pair{504, 3}, {500, 1}, {429, 1}}) {
    std::atomic<int> num_calls{0};
    HttpServerOptions options;
    options.port = 0;
    Result<std::unique_ptr<HttpServer>> server =
        HttpServer::Start(options, [&, code = status](const HttpMessage&, const Cancellation&) {
          ++num_calls;
          return HttpResponse{.status = code, .body = "{}"};
        });
    ASSERT_TRUE(server.ok());
    const Result<std::unique_ptr<FusionClient>> client =
        FusionClient::Make({.url = "http://127.0.0.1:" + std::to_string((*server)->port()),
                            .retry_pause = Seconds(0.01)});
    ASSERT_TRUE(client.ok());
    EXPECT_FALSE((*client)->Run({.code = ""}, {}).ok());
    EXPECT_EQ(num_calls, expected) << status;
  }
}

TEST(FusionClientTest, SpeaksVersion6) {
  HttpServerOptions options;
  options.address = "::1";
  options.port = 0;
  Result<std::unique_ptr<HttpServer>> server =
      HttpServer::Start(options, [](const HttpMessage& request, const Cancellation&) {
        EXPECT_TRUE(request.Header("host").starts_with("[::1]:")) << request.Header("host");
        return HttpResponse{.status = 200, .body = "{}"};
      });
  if (!server.ok()) GTEST_SKIP() << "SKIPPED: no IPv6 here: " << server.status().message();
  const Result<std::unique_ptr<FusionClient>> client =
      FusionClient::Make({.url = "http://[::1]:" + std::to_string((*server)->port())});
  ASSERT_TRUE(client.ok()) << client.status().message();
  EXPECT_TRUE((*client)->Ping().ok());
}

TEST(FusionClientTest, AnAnswerMayComeInOnePieceWithAnInterimOne) {
  const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  std::thread server([&listener] {
    const FileDescriptor socket(::accept(listener.get(), nullptr, nullptr));
    const std::string text =
        "HTTP/1.1 100 Continue\r\n\r\n" + HttpResponseText(200, "\"pong\"", false);
    EXPECT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    char buffer[4096];
    while (::recv(socket.get(), buffer, sizeof(buffer), 0) > 0) {
    }
  });
  const HttpUrl url{
      .host = "127.0.0.1", .port = std::to_string(ntohs(address.sin_port)), .path = ""};
  const Result<HttpMessage> answer = CallHttp(url, {.target = "/"}, Seconds(10), {});
  server.join();
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(answer->body, "\"pong\"");
}

TEST(FusionClientTest, NobodyThereIsAnError) {
  const Result<std::unique_ptr<FusionClient>> client =
      FusionClient::Make({.url = "http://127.0.0.1:1"});
  ASSERT_TRUE(client.ok());
  EXPECT_NE((*client)->Ping().message().find("127.0.0.1:1"), std::string::npos);
}

TEST(HttpUrlTest, IsRead) {
  const Result<HttpUrl> url = ReadHttpUrl("http://host:81/a/b/");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url->host, "host");
  EXPECT_EQ(url->port, "81");
  EXPECT_EQ(url->path, "/a/b");
  EXPECT_EQ(ReadHttpUrl("http://host")->port, "80");
  const Result<HttpUrl> version_6 = ReadHttpUrl("http://[::1]:8080/a");
  ASSERT_TRUE(version_6.ok()) << version_6.status().message();
  EXPECT_EQ(version_6->host, "::1");
  EXPECT_EQ(version_6->port, "8080");
  EXPECT_EQ(version_6->path, "/a");
  EXPECT_EQ(ReadHttpUrl("http://[fe80::2]")->port, "80");
  for (const char* text : {"", "host", "https://host", "http://", "http://h:x", "http://h:/a",
                           "http://a b", "http://h/a\r\nX: y", "http://::1:80", "http://[::1",
                           "http://[]", "http://[::1]x:80", "http://[host]"}) {
    EXPECT_FALSE(ReadHttpUrl(text).ok()) << text;
  }
}

}  // namespace
}  // namespace pace
