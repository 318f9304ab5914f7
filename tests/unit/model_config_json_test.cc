// The JSON tree: what it holds, where each value stands, and what an overlay does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/model_config/json_document.h"

namespace posenc {
namespace {

std::unique_ptr<JsonDocument> Parse(absl::string_view text) {
  auto document = JsonDocument::Parse(text, "config_json");
  EXPECT_TRUE(document.ok()) << document.status();
  return document.ok() ? *std::move(document) : nullptr;
}

std::unique_ptr<JsonDocument> Merged(absl::string_view base, absl::string_view over) {
  auto document = Parse(base);
  EXPECT_TRUE(document->Overlay(over, "overrides_json", {"rope_scaling"}).ok());
  return document;
}

TEST(JsonDocumentTest, NumbersKeepTheirKindAndPrecision) {
  const auto document = Parse(
      R"({"a": 9007199254740993, "b": 0.1, "c": 1e6, "d": 4096.0, "e": 4096.5,
          "f": 18446744073709551616, "g": -0.0, "h": 1.8446744073709552e+19})");
  const JsonValue root = document->root();
  EXPECT_EQ(root["a"].integer(), 9007199254740993);
  EXPECT_EQ(root["b"].number(), 0.1);
  EXPECT_EQ(root["b"].integer(), std::nullopt);
  EXPECT_EQ(root["c"].integer(), 1000000) << "not every writer keeps the two apart";
  EXPECT_EQ(root["d"].integer(), 4096);
  EXPECT_EQ(root["e"].integer(), std::nullopt);
  EXPECT_EQ(root["f"].integer(), std::nullopt);
  EXPECT_EQ(root["f"].number(), 0x1p64);
  EXPECT_TRUE(std::signbit(root["g"].number()));
  EXPECT_EQ(root["h"].integer(), std::nullopt);
}

TEST(JsonDocumentTest, ReadsWhatPythonWrites) {
  const auto document = Parse(R"({"a": NaN, "b": Infinity, "c": -Infinity, "d": "\ud83d\ude00é"})");
  EXPECT_TRUE(std::isnan(document->root()["a"].number()));
  EXPECT_EQ(document->root()["b"].number(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(document->root()["c"].number(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(document->root()["d"].string(), "\xF0\x9F\x98\x80\xC3\xA9");
}

TEST(JsonDocumentTest, ValuesKnowTheirPlace) {
  const auto document =
      Parse("{\n  \"a\": {\"b/c\": [1, {\"~\": [[], null]}]},\n\t\"d\" :\r\n true}");
  const JsonValue list = document->root()["a"]["b/c"];
  EXPECT_EQ(list.pointer(), "/a/b~1c");
  EXPECT_EQ(list.line(), 2);
  EXPECT_EQ(list.column(), 16);
  const JsonValue inner = list.children()[1]["~"];
  EXPECT_EQ(inner.pointer(), "/a/b~1c/1/~0");
  EXPECT_EQ(inner.children()[1].pointer(), "/a/b~1c/1/~0/1");
  EXPECT_EQ(inner.children()[1].column(), 31) << "behind a list, and a separator";
  EXPECT_EQ(document->root()["d"].line(), 4);
  EXPECT_EQ(document->root()["d"].column(), 2);
  EXPECT_EQ(document->root()["d"].field(), "config_json/d");
  EXPECT_EQ(document->root().PointerOf("x/y"), "/x~1y");
  EXPECT_EQ(document->root().line(), 1);
}

TEST(JsonDocumentTest, DescribesValuesAsTheyStandInTheFile) {
  const auto document = Parse(
      absl::StrCat(R"({"n": 1.50, "s": "a\"b", "o": {"x": 1}, "l": [ ], "z": null, "long": ")",
                   std::string(59, 'x'), "é\"}"));
  const JsonValue root = document->root();
  EXPECT_EQ(root["n"].Describe(), "1.50");
  EXPECT_EQ(root["s"].Describe(), "string \"a\\\"b\"");
  EXPECT_EQ(root["o"].Describe(), "an object");
  EXPECT_EQ(root["l"].Describe(), "a list");
  EXPECT_EQ(root["z"].Describe(), "null");
  EXPECT_EQ(root["nothing"].Describe(), "nothing");
  // Cut before the two bytes of é, not between them.
  EXPECT_EQ(root["long"].Text(), absl::StrCat("\"", std::string(59, 'x'), "..."));
}

TEST(JsonDocumentTest, TruthIsPythons) {
  const auto document = Parse(
      R"({"a": null, "b": false, "c": 0, "d": 0.0, "e": "", "f": [], "g": {},
          "h": true, "i": -1, "j": "0", "k": [0], "l": {"m": 0}, "n": NaN})");
  for (const char* key : {"a", "b", "c", "d", "e", "f", "g", "missing"}) {
    EXPECT_FALSE(document->root()[key].truthy()) << key;
  }
  for (const char* key : {"h", "i", "j", "k", "l", "n"}) {
    EXPECT_TRUE(document->root()[key].truthy()) << key;
  }
}

TEST(JsonDocumentTest, AbsenceIsAValueOfItsOwn) {
  const JsonValue absent;
  EXPECT_FALSE(absent.present());
  EXPECT_FALSE(absent["key"].present());
  EXPECT_EQ(absent.size(), 0u);
  EXPECT_TRUE(absent.children().empty());
  EXPECT_EQ(absent.line(), 0);
  EXPECT_EQ(absent.pointer(), "");
}

TEST(JsonDocumentTest, AnOverlayMergesObjectsAndReplacesTheRest) {
  const auto document = Merged(
      R"({"a": 1, "text_config": {"x": 1, "y": [1, 2]}, "rope_scaling": {"type": "yarn", "f": 4}})",
      R"({"b": 2, "text_config": {"y": [3], "z": {"w": 1}}, "rope_scaling": {"type": "linear"},
          "a": null})");
  const JsonValue root = document->root();
  EXPECT_TRUE(root["a"].is_null());
  EXPECT_EQ(root["b"].integer(), 2);
  EXPECT_EQ(root["text_config"]["x"].integer(), 1);
  EXPECT_EQ(root["text_config"]["y"].size(), 1u);
  EXPECT_EQ(root["text_config"]["z"]["w"].integer(), 1);
  EXPECT_FALSE(root["rope_scaling"]["f"].present()) << "named as one that is replaced whole";
  EXPECT_EQ(root.children().size(), 4u);
  EXPECT_EQ(root.size(), 4u);
}

TEST(JsonDocumentTest, WhatAnOverlayBroughtHasItsFieldAndNoLine) {
  const auto document = Merged("{\"t\": {\"x\": 1}}", "{\"t\": {\"y\": {\"z\": 2}, \"x\": 3}}");
  const JsonValue z = document->root()["t"]["y"]["z"];
  EXPECT_EQ(z.field(), "overrides_json/t/y/z");
  EXPECT_EQ(z.line(), 0);
  EXPECT_EQ(document->root()["t"]["x"].field(), "overrides_json/t/x");
  EXPECT_EQ(document->root()["t"].field(), "config_json/t");
}

TEST(JsonDocumentTest, ADefaultStandsWhereTheConfigWouldHaveIt) {
  const auto document = JsonDocument::ParseDefault("{\"factor\": 2}", "/rope_parameters");
  EXPECT_EQ(document->root()["factor"].pointer(), "/rope_parameters/factor");
  EXPECT_EQ(document->root()["factor"].line(), 0);
}

TEST(JsonDocumentTest, NestingIsRefusedExactlyAtItsBound) {
  const auto nested = [](size_t depth) {
    return JsonDocument::Parse(
        absl::StrCat("{\"a\":", std::string(depth - 1, '['), std::string(depth - 1, ']'), "}"),
        "config_json");
  };
  EXPECT_TRUE(nested(kMaxConfigDepth).ok());
  EXPECT_FALSE(nested(kMaxConfigDepth + 1).ok());
}

}  // namespace
}  // namespace posenc
