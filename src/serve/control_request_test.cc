#include "serve/control_request.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

Target Parts(std::string_view target) {
  Result<Target> read = ReadTarget(target);
  EXPECT_TRUE(read.ok()) << read.status().message();
  return read.ok() ? *read : Target();
}

TEST(TargetTest, HasAPathAndAQuery) {
  EXPECT_EQ(Parts("/pause").path, "/pause");
  EXPECT_EQ(Parts("/pause?mode=keep&clear_cache=false").query,
            (std::map<std::string, std::string>{{"mode", "keep"}, {"clear_cache", "false"}}));
  EXPECT_EQ(Parts("/a?b=c%2Fd+e&f").query,
            (std::map<std::string, std::string>{{"b", "c/d e"}, {"f", ""}}));
  EXPECT_FALSE(ReadTarget("/a?b=%x").ok());
  EXPECT_FALSE(ReadTarget("/a?b=1&b=2").ok());
}

TEST(PauseRequestTest, HasVllmsDefaults) {
  const Result<PauseRequest> request = ReadPauseRequest(Parts("/pause"));
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->mode, PauseMode::kAbort);
  EXPECT_TRUE(request->clear_cache);
  const Result<PauseRequest> keep = ReadPauseRequest(Parts("/pause?mode=keep&clear_cache=false"));
  ASSERT_TRUE(keep.ok());
  EXPECT_EQ(keep->mode, PauseMode::kKeep);
  EXPECT_FALSE(keep->clear_cache);
  EXPECT_EQ(ReadPauseRequest(Parts("/pause?mode=stop")).status().message(),
            "mode = stop: must be abort, wait or keep");
  EXPECT_FALSE(ReadPauseRequest(Parts("/pause?clear_cache=maybe")).ok());
  EXPECT_FALSE(ReadPauseRequest(Parts("/pause?wait_for_inflight_requests=true")).ok());
}

TEST(AbortRequestTest, NamesRequestsOrNone) {
  EXPECT_EQ(*ReadAbortRequest(R"({"request_ids": ["a", "b"]})", true),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(ReadAbortRequest("{}", false)->empty());
  EXPECT_TRUE(ReadAbortRequest(R"({"request_ids": null})", false)->empty());
  EXPECT_FALSE(ReadAbortRequest("{}", true).ok());
  EXPECT_FALSE(ReadAbortRequest("", false).ok());
  const std::vector<std::string> known = KnownIds({"a"});
  EXPECT_EQ(known, (std::vector<std::string>{"a", "generate-tokens-a", "cmpl-a", "chatcmpl-a"}));
}

TEST(WeightRequestsTest, NameAFolderOrALabel) {
  EXPECT_EQ(
      ReadRpcRequest(R"({"method": "reload_weights", "kwargs": {"weights_path": "w"}})")->folder,
      "w");
  EXPECT_EQ(ReadRpcRequest(R"({"method": "shutdown"})").status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(ReadRpcRequest(R"({"method": "reload_weights"})").ok());
  EXPECT_TRUE(ReadRpcRequest(R"({"method": "get_model_inspection"})")->inspects);
  EXPECT_FALSE(ReadRpcRequest(R"({"method": "reload_weights", "kwargs": {}})").ok());
  EXPECT_FALSE(ReadRpcRequest(R"({"method": "reload_weights", "args": ["w"]})").ok());
  EXPECT_EQ(*ReadUpdateRequest(R"({"update_info": {"weights_path": "w"}})"), "w");
  EXPECT_FALSE(ReadUpdateRequest(R"({"update_info": {"names": ["a"]}})").ok());
  EXPECT_TRUE(ReadInitRequest(R"({"init_info": {}})").ok());
  EXPECT_FALSE(ReadInitRequest(R"({"init_info": {"master_port": 1}})").ok());
  EXPECT_EQ(*ReadLabelRequest(R"({"new_version": "7"})"), "7");
  EXPECT_FALSE(ReadLabelRequest("{}").ok());
  EXPECT_EQ(*ReadFinishRequest(R"({"weight_version": "7"})"), "7");
  EXPECT_EQ(*ReadFinishRequest(""), std::nullopt);
  EXPECT_EQ(*ReadFinishRequest(R"({"weight_version": null})"), std::nullopt);
}

TEST(ResetRequestTest, SaysWhetherRunningResponsesAreReset) {
  EXPECT_FALSE(*ReadResetRequest(Parts("/reset_prefix_cache")));
  EXPECT_TRUE(*ReadResetRequest(Parts("/reset_prefix_cache?reset_running_requests=true")));
  EXPECT_FALSE(ReadResetRequest(Parts("/reset_prefix_cache?reset_external=true")).ok());
}

}  // namespace
}  // namespace pace
