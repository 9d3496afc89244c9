#include "serve/server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

#include "core/test_files.h"
#include "http/client.h"
#include "serve/test_host.h"
#include "text/python_text.h"

namespace pace {
namespace {

class ApiServerTest : public ::testing::Test {
 protected:
  void Start(const std::string& key = "") {
    Result<std::unique_ptr<EngineHost>> host =
        EngineHost::Start(HostCore(gate_), HostWeights(1), {});
    ASSERT_TRUE(host.ok()) << host.status().message();
    host_ = std::move(host).value();
    api_ = std::make_unique<ApiServer>(
        ApiServerOptions{.api_key = key, .version = "1.2.3"},
        ServedModel{.name = "m", .root = "models/m", .tokenizer = LetterTokenizer(26)}, *host_);
    HttpServerOptions options;
    options.port = 0;
    Result<std::unique_ptr<HttpServer>> server = HttpServer::Start(
        options, [this](const HttpMessage& request, const Cancellation& cancellation) {
          return api_->Answer(request, cancellation);
        });
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(server).value();
  }
  ~ApiServerTest() override { gate_.AllowAll(); }

  HttpMessage Call(const std::string& method, const std::string& target,
                   const std::string& body = "") {
    const HttpUrl url{.host = "127.0.0.1", .port = std::to_string(server_->port()), .path = ""};
    const Result<HttpMessage> answer =
        CallHttp(url, {.method = method, .target = target, .body = body}, Seconds(60), {});
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    return answer.ok() ? *answer : HttpMessage();
  }
  HttpMessage Post(const std::string& target, const std::string& body = "") {
    return Call("POST", target, body);
  }
  HttpMessage Get(const std::string& target) { return Call("GET", target); }

  // A connection that speaks for itself.
  FileDescriptor Connect() const {
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
  static std::string PostText(const std::string& target, const std::string& body) {
    return Concat("POST ", target, " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ", body.size(),
                  "\r\n\r\n", body);
  }

  PassGate gate_;
  std::unique_ptr<EngineHost> host_;
  std::unique_ptr<ApiServer> api_;
  std::unique_ptr<HttpServer> server_;
};

constexpr char kGenerate[] =
    R"({"token_ids": [1, 2, 3], "request_id": "r", "sampling_params":
        {"max_tokens": 6, "seed": 3, "logprobs": 0}})";

TEST_F(ApiServerTest, GeneratesTokens) {
  Start();
  gate_.AllowAll();
  const HttpMessage answer = Post("/inference/v1/generate", kGenerate);
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_NE(answer.body.find(R"("request_id":"generate-tokens-r")"), std::string::npos);
  EXPECT_NE(answer.body.find(R"("weight_versions":[{"version":"default","start":0,"end":)"),
            std::string::npos)
      << answer.body;
  const HttpMessage again = Post("/inference/v1/generate", kGenerate);
  EXPECT_EQ(answer.body.substr(answer.body.find("choices")),
            again.body.substr(again.body.find("choices")));
}

TEST_F(ApiServerTest, StreamsTheSameTokensInChunks) {
  Start();
  gate_.AllowAll();
  std::string body = kGenerate;
  body.insert(1, R"("stream": true, )");
  const HttpMessage answer = Post("/inference/v1/generate", body);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Header("content-type"), "text/event-stream; charset=utf-8");
  EXPECT_TRUE(answer.body.starts_with("data: {")) << answer.body;
  EXPECT_TRUE(answer.body.ends_with("data: [DONE]\n\n")) << answer.body;
  // All ids of the events are those of the whole answer.
  const auto ids = [](const std::string& text) {
    std::string all;
    constexpr std::string_view kKey = "\"token_ids\":[";
    for (size_t at = text.find(kKey); at != std::string::npos; at = text.find(kKey, at)) {
      at += kKey.size();
      const std::string list = text.substr(at, text.find(']', at) - at);
      if (!list.empty()) all += list + ",";
    }
    return all;
  };
  EXPECT_EQ(ids(answer.body), ids(Post("/inference/v1/generate", kGenerate).body));
}

TEST_F(ApiServerTest, EventsArriveBeforeTheEnd) {
  Start();
  const FileDescriptor socket = Connect();
  std::string body = kGenerate;
  body.insert(1, R"("stream": true, )");
  Send(socket, PostText("/inference/v1/generate", body));
  gate_.Allow(1);
  EXPECT_NE(ReceiveUntil(socket, "\n\n\r\n").find("\"token_ids\":["), std::string::npos);
  gate_.AllowAll();
  EXPECT_NE(ReceiveUntil(socket, "\r\n0\r\n\r\n").find("[DONE]"), std::string::npos);
  Send(socket, "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_TRUE(ReceiveUntil(socket, "\r\n\r\n").starts_with("HTTP/1.1 200 OK"))
      << "the connection stays";
}

TEST_F(ApiServerTest, CompletesTextAndRefusesChatsWithoutATemplate) {
  Start();
  gate_.AllowAll();
  const HttpMessage answer =
      Post("/v1/completions", R"({"prompt": "abc", "max_tokens": 4, "temperature": 0})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_NE(answer.body.find(R"("object":"text_completion")"), std::string::npos);
  EXPECT_NE(answer.body.find(R"("id":"cmpl-)"), std::string::npos);
  const HttpMessage chat =
      Post("/v1/chat/completions", R"({"messages": [{"role": "user", "content": "a"}]})");
  EXPECT_EQ(chat.status, 400);
  EXPECT_NE(chat.body.find("no chat template"), std::string::npos) << chat.body;
}

TEST_F(ApiServerTest, MistakesHaveVllmsStatusAndShape) {
  Start();
  gate_.AllowAll();
  const HttpMessage bad = Post("/inference/v1/generate", "{");
  EXPECT_EQ(bad.status, 400);
  EXPECT_TRUE(bad.body.starts_with(R"({"error":{"message":")")) << bad.body;
  EXPECT_EQ(Post("/inference/v1/generate", R"({"token_ids": [99], "sampling_params": {}})").status,
            400);
  const HttpMessage model = Post("/v1/completions", R"({"prompt": "a", "model": "other"})");
  EXPECT_EQ(model.status, 404);
  EXPECT_NE(model.body.find("NotFoundError"), std::string::npos);
  EXPECT_EQ(Get("/nothing").status, 404);
  EXPECT_EQ(Get("/pause").status, 405);
  EXPECT_EQ(Post("/pause?mode=x").status, 400);
  EXPECT_EQ(Post("/collective_rpc", R"({"method": "sleep"})").status, 404);
  EXPECT_EQ(Post("/collective_rpc",
                 R"({"method": "reload_weights", "kwargs": {"weights_path": "no/such/folder"}})")
                .status,
            400);
  EXPECT_EQ(Post("/update_weights", R"({"update_info": {"weights_path": "w"}})").status, 400)
      << "no update was started";
}

TEST_F(ApiServerTest, AnUpdateGoesThroughTheWholeProtocol) {
  Start();
  gate_.AllowAll();
  const std::string folder = SaveWeights((ScratchFolder() / "w").string(), 2);
  EXPECT_EQ(Post("/init_weight_transfer_engine", R"({"init_info": {}})").status, 200);
  EXPECT_EQ(Post("/pause?mode=keep&clear_cache=true").body, R"({"status":"paused"})");
  EXPECT_EQ(Get("/is_paused").body, R"({"is_paused":true})");
  EXPECT_EQ(Post("/start_weight_update").status, 200);
  EXPECT_EQ(Post("/start_weight_update").status, 400);
  EXPECT_EQ(
      Post("/update_weights", Concat(R"({"update_info": {"weights_path": ")", folder, R"("}})"))
          .body,
      R"({"message":"Weights updated"})");
  EXPECT_EQ(Post("/finish_weight_update", R"({"weight_version": "run:17"})").status, 200);
  EXPECT_EQ(Get("/weight_info").body, R"({"weight_version":"run:17"})");
  EXPECT_EQ(Post("/resume").body, R"({"status":"resumed"})");
  const HttpMessage answer = Post("/inference/v1/generate", kGenerate);
  EXPECT_NE(answer.body.find(R"("version":"run:17")"), std::string::npos) << answer.body;
  EXPECT_EQ(Post("/update_weight_version", R"({"new_version": "18"})").body,
            R"({"success":true,"new_version":"18"})");
  EXPECT_EQ(Get("/weight_info").body, R"({"weight_version":"18"})");
}

TEST_F(ApiServerTest, AbortAnswersThePendingCallWithItsTokens) {
  Start();
  auto pending = std::async(std::launch::async, [this] {
    return Post("/inference/v1/generate",
                R"({"token_ids": [1], "request_id": "r7", "sampling_params":
                    {"max_tokens": 100, "seed": 1, "ignore_eos": true}})");
  });
  gate_.Allow(4);
  gate_.WaitForPasses(4);
  EXPECT_EQ(Post("/abort_requests", R"({"request_ids": ["r7"]})").body,
            R"({"status":"aborted","aborted":1})");
  gate_.AllowAll();
  const HttpMessage answer = pending.get();
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.body.find(R"("finish_reason":"abort")"), std::string::npos) << answer.body;
  EXPECT_EQ(Post("/inference/v1/abort_requests", R"({"request_ids": ["r7"]})").status, 200);
  EXPECT_EQ(Post("/inference/v1/abort_requests", "{}").status, 400);
  EXPECT_EQ(Post("/abort_requests", "{}").body, R"({"status":"aborted","aborted":0})");
}

TEST_F(ApiServerTest, AClientThatHangsUpCancelsItsRequest) {
  Start();
  for (const bool streamed : {false, true}) {
    FileDescriptor socket = Connect();
    Send(socket,
         PostText("/inference/v1/generate",
                  Concat(R"({"token_ids": [1], "stream": )", streamed ? "true" : "false",
                         R"(, "sampling_params": {"max_tokens": 200, "ignore_eos": true}})")));
    while (Get("/load").body == R"({"server_load":0})") std::this_thread::yield();
    socket.Close();
    while (Get("/load").body != R"({"server_load":0})") std::this_thread::yield();
  }
  gate_.AllowAll();
  EXPECT_EQ(Post("/inference/v1/generate", kGenerate).status, 200);
}

TEST_F(ApiServerTest, EveryRouteNeedsTheKey) {
  Start("secret");
  gate_.AllowAll();
  const HttpMessage refused = Get("/health");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.body, R"({"error":"Unauthorized"})");
  EXPECT_EQ(Post("/collective_rpc", "{}").status, 401);
  EXPECT_EQ(Get("/nothing").status, 401);
  for (const auto& [key, status] : std::vector<std::pair<std::string, std::string>>{
           {"Bearer secret", "200"}, {"Bearer secreT", "401"}, {"secret", "401"}, {"", "401"}}) {
    const FileDescriptor socket = Connect();
    Send(socket, Concat("GET /health HTTP/1.1\r\nAuthorization: ", key, "\r\n\r\n"));
    EXPECT_TRUE(ReceiveUntil(socket, "\r\n\r\n").starts_with("HTTP/1.1 " + status)) << key;
  }
}

TEST_F(ApiServerTest, SaysWhatItServes) {
  Start();
  gate_.AllowAll();
  EXPECT_NE(Get("/v1/models").body.find(R"("id":"m","object":"model")"), std::string::npos);
  EXPECT_NE(Get("/v1/models").body.find(R"("max_model_len":256)"), std::string::npos);
  EXPECT_EQ(Get("/health").status, 200);
  EXPECT_EQ(Get("/ping").status, 200);
  EXPECT_EQ(Get("/version").body, R"({"version":"1.2.3","server":"pace"})");
  EXPECT_EQ(Get("/get_world_size").body, R"({"world_size":1})");
  EXPECT_EQ(Post("/reset_prefix_cache").body, R"({"success":true})");
  EXPECT_EQ(Post("/tokenize", R"({"prompt": "abc"})").body,
            R"({"count":3,"max_model_len":256,"tokens":[0,1,2],"token_strs":null})");
  EXPECT_EQ(Post("/detokenize", R"({"tokens": [2, 1]})").body, R"({"prompt":"cb"})");
  Post("/inference/v1/generate", kGenerate);
  const std::string metrics = Get("/metrics").body;
  EXPECT_NE(metrics.find("vllm:generation_tokens_total{model_name=\"m\"}"), std::string::npos);
  EXPECT_NE(metrics.find("vllm:time_to_first_token_seconds_count{model_name=\"m\"} 1\n"),
            std::string::npos)
      << metrics;
  EXPECT_NE(metrics.find("vllm:prompt_tokens_total{model_name=\"m\"} 3\n"), std::string::npos)
      << metrics;
  for (const char* target : {"/openapi.json", "/server_info", "/v1/models", "/load"}) {
    EXPECT_TRUE(ParsePythonJson(Get(target).body).ok()) << target;
  }
}

}  // namespace
}  // namespace pace
