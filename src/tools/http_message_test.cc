#include "tools/http_message.h"

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
  EXPECT_EQ(reader.Take()->body, "abcd0123456789");
  EXPECT_FALSE(reader.begun());
}

TEST(HttpMessageTest, MessagesFollowEachOther) {
  HttpReader reader(kRequest, {});
  ASSERT_TRUE(reader.Feed("GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\nGET").ok());
  EXPECT_EQ(reader.Take()->target, "/a");
  ASSERT_TRUE(reader.whole());
  EXPECT_EQ(reader.Take()->target, "/b");
  EXPECT_FALSE(reader.whole());
  EXPECT_TRUE(reader.begun());
}

TEST(HttpMessageTest, ConnectionSaysWhetherToStay) {
  EXPECT_FALSE(Read(kRequest, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n")->keep_alive);
  EXPECT_FALSE(Read(kRequest, "GET / HTTP/1.0\r\n\r\n")->keep_alive);
  EXPECT_TRUE(Read(kRequest, "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")->keep_alive);
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

}  // namespace
}  // namespace pace
