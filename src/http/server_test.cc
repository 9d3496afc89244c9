#include "http/server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "http/client.h"

namespace pace {
namespace {

class HttpServerTest : public ::testing::Test {
 protected:
  void Start(HttpServerOptions options, HttpServer::Handler handler) {
    options.port = 0;
    Result<std::unique_ptr<HttpServer>> server = HttpServer::Start(options, std::move(handler));
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(server).value();
  }
  Result<HttpMessage> Try(const std::string& target) {
    const HttpUrl url{.host = "127.0.0.1", .port = std::to_string(server_->port()), .path = ""};
    return CallHttp(url, {.method = "GET", .target = target}, Seconds(60), {});
  }
  HttpMessage Call(const std::string& target) {
    const Result<HttpMessage> answer = Try(target);
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    return answer.ok() ? *answer : HttpMessage();
  }
  FileDescriptor Connect() const {
    FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return socket;
  }
  static void Send(const FileDescriptor& socket, std::string_view text) {
    ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  static std::string ReceiveAll(const FileDescriptor& socket) {
    std::string text;
    char buffer[4096];
    for (ssize_t count = 1; count > 0;) {
      count = ::recv(socket.get(), buffer, sizeof(buffer), 0);
      if (count > 0) text.append(buffer, static_cast<size_t>(count));
    }
    return text;
  }
  static HttpResponse Ok(const HttpMessage&, const Cancellation&) { return {.body = "\"ok\""}; }
  static HttpResponse Streamed(const HttpMessage&, const Cancellation&) {
    HttpResponse response;
    response.content_type = "text/event-stream";
    response.stream = [](HttpStream& out) {
      for (const char* part : {"one ", "", "two ", "three"}) EXPECT_TRUE(out.Send(part));
    };
    return response;
  }

  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, StreamsABodyInChunks) {
  Start({}, Streamed);
  const HttpMessage answer = Call("/");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "one two three");
  EXPECT_EQ(answer.Header("transfer-encoding"), "chunked");
}

TEST_F(HttpServerTest, StreamsToAnOldClientUntilTheConnectionEnds) {
  Start({}, Streamed);
  const FileDescriptor socket = Connect();
  Send(socket, "GET / HTTP/1.0\r\n\r\n");
  const std::string text = ReceiveAll(socket);
  EXPECT_EQ(text.find("chunked"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\r\n\r\none two three")) << text;
}

TEST_F(HttpServerTest, AConnectionServesMoreAfterAStream) {
  Start({}, Streamed);
  const FileDescriptor socket = Connect();
  Send(socket, "GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string text = ReceiveAll(socket);
  EXPECT_NE(text.find("HTTP/1.1 200", text.find("0\r\n\r\n")), std::string::npos) << text;
}

TEST_F(HttpServerTest, AStreamEndsWhenItsClientDoesNotRead) {
  std::promise<void> ended;
  HttpServerOptions options;
  options.patience = Seconds(0.2);
  Start(options, [&](const HttpMessage&, const Cancellation&) {
    HttpResponse response;
    response.stream = [&](HttpStream& out) {
      while (out.Send(std::string(65536, 'x'))) {
      }
      EXPECT_FALSE(out.Send("more"));
      ended.set_value();
    };
    return response;
  });
  const FileDescriptor socket = Connect();
  Send(socket, "GET / HTTP/1.1\r\n\r\n");
  ended.get_future().get();
}

TEST_F(HttpServerTest, AHandlerMayTakeLongerThanClientsMay) {
  HttpServerOptions options;
  options.patience = Seconds(0.05);
  Start(options, [](const HttpMessage&, const Cancellation&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return HttpResponse{.body = "\"late\""};
  });
  EXPECT_EQ(Call("/").body, "\"late\"");
}

TEST_F(HttpServerTest, IdleAndSlowClientsMakeRoomForOthers) {
  HttpServerOptions options;
  options.max_connections = 8;
  options.min_idle = Seconds(0.02);
  Start(options, Ok);
  std::vector<FileDescriptor> rude;
  for (int i = 0; i < 8; ++i) {
    rude.push_back(Connect());
    if (i % 2 == 0) Send(rude.back(), "GET / HTT");
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Call("/").status, 200) << i;
}

TEST_F(HttpServerTest, ConnectionsThatAreServedAreNeverEndedForOthers) {
  std::atomic<bool> released = false;
  HttpServerOptions options;
  options.max_connections = 2;
  options.min_idle = Seconds(0);
  Start(options, [&](const HttpMessage&, const Cancellation& cancellation) {
    while (!released) {
      pollfd waiting{cancellation.descriptor, cancellation.events, 0};
      EXPECT_EQ(::poll(&waiting, 1, 5), 0) << "its client is still there";
    }
    return HttpResponse{.body = "\"ok\""};
  });
  std::vector<FileDescriptor> served;
  for (int i = 0; i < 2; ++i) {
    served.push_back(Connect());
    Send(served.back(), "GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(Call("/").status, 503);
  released = true;
  for (const FileDescriptor& socket : served) {
    EXPECT_TRUE(ReceiveAll(socket).starts_with("HTTP/1.1 200"));
  }
}

TEST_F(HttpServerTest, AThousandRudeClientsDoNotKeepOthersOut) {
  HttpServerOptions options;
  options.max_connections = 64;
  options.min_idle = Seconds(0.05);
  Start(options, Ok);
  std::vector<FileDescriptor> rude;
  for (int i = 0; i < 1000; ++i) {
    rude.push_back(Connect());
    Send(rude.back(), "POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\nslow");
    if (rude.size() > 300) rude.erase(rude.begin());
    if (i % 100 != 99) continue;
    // Those that came just now may keep their places for a moment.
    bool answered = false;
    for (int tries = 0; tries < 100 && !answered; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      const Result<HttpMessage> answer = Try("/health");
      answered = answer.ok() && answer->status == 200;
    }
    EXPECT_TRUE(answered);
  }
}

}  // namespace
}  // namespace pace
