#include "http/message.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

constexpr HttpReader::Kind kRequest = HttpReader::Kind::kRequest;
constexpr HttpReader::Kind kResponse = HttpReader::Kind::kResponse;

Result<HttpMessage> Read(HttpReader::Kind kind, const std::string& text) {
  HttpReader reader(kind, {.max_head_bytes = 200, .max_body_bytes = 100});
  PACE_RETURN_IF_ERROR(reader.Feed(text));
  if (!reader.whole()) PACE_RETURN_IF_ERROR(reader.End());
  return reader.Take();
}

TEST(HttpMessageTest, ReadsARequest) {
  const Result<HttpMessage> message =
      Read(kRequest, "POST /run HTTP/1.1\r\nHost: a\r\nContent-LENGTH:  3 \r\n\r\nabc");
  ASSERT_TRUE(message.ok()) << message.status().message();
  EXPECT_EQ(message->method, "POST");
  EXPECT_EQ(message->target, "/run");
  EXPECT_EQ(message->Header("host"), "a");
  EXPECT_EQ(message->body, "abc");
  EXPECT_TRUE(message->keep_alive);
}

TEST(HttpMessageTest, BytesMayComeOneByOne) {
  const std::string text =
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\nabcd\r\nA\r\n0123456789\r\n"
      "0\r\nTrailer: t\r\n\r\n";
  HttpReader reader(kRequest, {});
  for (size_t at = 0; at < text.size(); ++at) {
    EXPECT_FALSE(reader.whole()) << at;
    ASSERT_TRUE(reader.Feed(text.substr(at, 1)).ok()) << at;
  }
  ASSERT_TRUE(reader.whole());
  EXPECT_EQ(reader.Take().body, "abcd0123456789");
  EXPECT_FALSE(reader.begun());
}

TEST(HttpMessageTest, MessagesFollowEachOther) {
  HttpReader reader(kRequest, {});
  ASSERT_TRUE(reader.Feed("GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\nGET").ok());
  EXPECT_EQ(reader.Take().target, "/a");
  ASSERT_TRUE(reader.Feed("").ok());
  ASSERT_TRUE(reader.whole());
  EXPECT_EQ(reader.Take().target, "/b");
  ASSERT_TRUE(reader.Feed("").ok());
  EXPECT_FALSE(reader.whole());
  EXPECT_TRUE(reader.begun());
}

TEST(HttpMessageTest, JunkAfterAMessageDoesNotLoseIt) {
  HttpReader reader(kRequest, {});
  ASSERT_TRUE(reader.Feed("GET /a HTTP/1.1\r\n\r\njunk\r\n\r\n").ok());
  EXPECT_EQ(reader.Take().target, "/a");
  EXPECT_FALSE(reader.Feed("").ok());
}

Status CheckHeaders(const std::string& headers, bool local = true) {
  const Result<HttpMessage> request = Read(kRequest, "POST / HTTP/1.1\r\n" + headers + "\r\n");
  EXPECT_TRUE(request.ok()) << headers;
  return request.ok() ? CheckSite(*request, local) : request.status();
}

TEST(HttpSiteTest, ProgramsThatAskAreNoWebPages) {
  for (const char* headers :
       {"", "Host: localhost:8080\r\n", "Host: 127.0.0.1\r\n", "Host: [::1]:8080\r\n",
        "Host: 127.0.0.1:8080\r\nOrigin: http://127.0.0.1:8080\r\n",
        "Host: localhost:81\r\nOrigin: http://localhost:81\r\n"}) {
    EXPECT_TRUE(CheckHeaders(headers).ok()) << headers;
  }
  EXPECT_TRUE(CheckHeaders("Host: node-7:8080\r\n", false).ok()) << "reached by its name";
}

TEST(HttpSiteTest, WebPagesAreRefused) {
  for (const char* headers :
       {"Host: 127.0.0.1:8080\r\nOrigin: http://evil.example\r\n", "Origin: null\r\n",
        "Host: evil.example:8080\r\nOrigin: http://evil.example:8080\r\n", "Host: evil.example\r\n",
        "Host: localhost.evil.example\r\n",
        "Host: 127.0.0.1:8080\r\nOrigin: http://127.0.0.1:9090\r\n",
        "Host: localhost:81\r\nOrigin: https://localhost:81\r\n", "Host: [::1\r\nOrigin: \r\n"}) {
    EXPECT_FALSE(CheckHeaders(headers).ok()) << headers;
  }
  for (const char* headers : {"Host: node-7:8080\r\nOrigin: http://node-7:8080\r\n",
                              "Host: node-7:8080\r\nOrigin: http://evil.example\r\n"}) {
    EXPECT_FALSE(CheckHeaders(headers, false).ok()) << headers;
  }
}

TEST(HttpMessageTest, ConnectionSaysWhetherToStay) {
  EXPECT_FALSE(Read(kRequest, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n")->keep_alive);
  EXPECT_FALSE(Read(kRequest, "GET / HTTP/1.0\r\n\r\n")->keep_alive);
  EXPECT_TRUE(Read(kRequest, "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")->keep_alive);
}

TEST(HttpMessageTest, SomeResponsesHaveNoBody) {
  for (const char* status : {"100 Continue", "102 Processing", "204 No Content", "304 Same"}) {
    HttpReader reader(kResponse, {});
    ASSERT_TRUE(reader.Feed(Concat("HTTP/1.1 ", status, "\r\n\r\nHTTP/1.1 200 OK")).ok());
    ASSERT_TRUE(reader.whole()) << status;
    EXPECT_EQ(reader.Take().body, "");
  }
}

TEST(HttpMessageTest, AResponseMayEndWithTheConnection) {
  const Result<HttpMessage> message = Read(kResponse, "HTTP/1.1 200 OK\r\n\r\nall of it");
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->status, 200);
  EXPECT_EQ(message->body, "all of it");
}

TEST(HttpMessageTest, AsksToGoOn) {
  HttpReader reader(kRequest, {});
  ASSERT_TRUE(
      reader.Feed("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n").ok());
  EXPECT_TRUE(reader.wants_continue());
  reader.Continued();
  EXPECT_FALSE(reader.wants_continue());
}

TEST(HttpMessageTest, RefusesWhatIsAmbiguous) {
  const std::string get = "GET / HTTP/1.1\r\n";
  for (const std::string& text :
       {std::string("GET /\r\n\r\n"), std::string("GET / HTTP/2\r\n\r\n"),
        std::string(" / HTTP/1.1\r\n\r\n"), std::string("G\x01T / HTTP/1.1\r\n\r\n"),
        get + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
        get + "Content-Length: +1\r\n\r\na", get + "Content-Length: 1x\r\n\r\na",
        get + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        get + "Transfer-Encoding: gzip\r\n\r\n", get + " folded: x\r\n\r\n",
        get + "name : x\r\n\r\n", get + "no colon\r\n\r\n", get + std::string("a: \0\r\n\r\n", 8),
        get + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", get + "Content-Length: 5\r\n\r\nabc",
        get + "Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n"}) {
    EXPECT_FALSE(Read(kRequest, text).ok()) << text;
  }
}

TEST(HttpMessageTest, EverythingIsBounded) {
  const std::string get = "GET / HTTP/1.1\r\n";
  EXPECT_FALSE(Read(kRequest, get + "a: " + std::string(300, 'x') + "\r\n\r\n").ok());
  EXPECT_FALSE(Read(kRequest, std::string(300, 'x')).ok());
  EXPECT_FALSE(Read(kRequest, get + "Content-Length: 101\r\n\r\n").ok());
  EXPECT_FALSE(Read(kRequest, get + "Transfer-Encoding: chunked\r\n\r\n65\r\n").ok());
  EXPECT_FALSE(Read(kRequest, get + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n").ok());
  EXPECT_FALSE(Read(kResponse, "HTTP/1.1 200 OK\r\n\r\n" + std::string(101, 'x')).ok());
}

// A limit is the same whether bytes come at once or one by one.
TEST(HttpMessageTest, LimitsDoNotDependOnThePieces) {
  constexpr HttpLimits kLimits{.max_head_bytes = 200, .max_body_bytes = 100};
  const std::string chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  struct Case {
    std::string what;
    std::string before;
    std::string after;
    size_t limit = 0;  // of what is between
  };
  const std::string line = "GET / HTTP/1.1\r\nA: ";
  const std::vector<Case> cases = {
      {"head", line, "\r\n\r\n", kLimits.max_head_bytes - line.size()},
      {"size", chunked + "1;", "\r\nx\r\n0\r\n\r\n", 256 - 2},
      {"trailer", chunked + "0\r\n", "\r\n\r\n", kLimits.max_head_bytes},
      {"trailers", chunked + "0\r\nA: b\r\n", "\r\n\r\n", kLimits.max_head_bytes - 4}};
  for (const Case& c : cases) {
    for (size_t length = c.limit - 5; length <= c.limit + 5; ++length) {
      const std::string text = c.before + std::string(length, 'a') + c.after;
      HttpReader at_once(kRequest, kLimits);
      HttpReader in_pieces(kRequest, kLimits);
      bool pieces_ok = true;
      for (size_t at = 0; at < text.size() && pieces_ok; ++at) {
        pieces_ok = in_pieces.Feed(text.substr(at, 1)).ok();
      }
      EXPECT_EQ(at_once.Feed(text).ok(), length <= c.limit) << c.what << " " << length;
      EXPECT_EQ(pieces_ok, length <= c.limit) << c.what << " " << length;
    }
  }
}

TEST(HttpMessageTest, WhatIsWrittenCanBeRead) {
  const Result<HttpMessage> request =
      Read(kRequest, HttpRequestText("POST", "host:1", "/a", "body"));
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->target, "/a");
  EXPECT_EQ(request->body, "body");
  EXPECT_FALSE(request->keep_alive);
  const Result<HttpMessage> response = Read(kResponse, HttpResponseText(422, "{}", true));
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 422);
  EXPECT_EQ(response->body, "{}");
}

TEST(HttpStreamTest, ChunksReadBackAsTheBody) {
  HttpReader reader(HttpReader::Kind::kResponse, {});
  const std::string text = HttpStreamHead(200, "text/event-stream", /*chunked=*/true,
                                          /*keep_alive=*/true) +
                           HttpChunk("one") + HttpChunk(std::string(300, 'x')) + HttpChunk("");
  ASSERT_TRUE(reader.Feed(text).ok());
  ASSERT_TRUE(reader.whole());
  const HttpMessage message = reader.Take();
  EXPECT_EQ(message.body, "one" + std::string(300, 'x'));
  EXPECT_EQ(message.Header("content-type"), "text/event-stream");
}

TEST(HttpStreamTest, WithoutChunksTheBodyEndsWithTheConnection) {
  HttpReader reader(HttpReader::Kind::kResponse, {});
  ASSERT_TRUE(reader.Feed(HttpStreamHead(200, "text/plain", false, false) + "one").ok());
  EXPECT_FALSE(reader.whole());
  ASSERT_TRUE(reader.End().ok());
  EXPECT_EQ(reader.Take().body, "one");
}

}  // namespace
}  // namespace pace
