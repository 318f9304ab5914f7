#include "client/cli/apply_fix.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rapidjson/document.h"
#include "rapidjson/pointer.h"
#include "rapidjson/stringbuffer.h"
#include "rapidjson/writer.h"

namespace posenc::cli {
namespace {

// As configs are read elsewhere: iterative, every digit kept, Python's NaN and Infinity too.
constexpr unsigned kParseFlags = rapidjson::kParseIterativeFlag |
                                 rapidjson::kParseFullPrecisionFlag |
                                 rapidjson::kParseNanAndInfFlag;

bool Parse(absl::string_view json, rapidjson::Document* document) {
  document->Parse<kParseFlags>(json.data(), json.size());
  return !document->HasParseError();
}

std::string ScalarText(const rapidjson::Value& value) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                    rapidjson::CrtAllocator, rapidjson::kWriteNanAndInfFlag>
      writer(buffer);
  value.Accept(writer);
  return buffer.GetString();
}

// On one line, with spaces as people write them. As deep as a config that was read.
std::string TextOf(const rapidjson::Value& value) {
  if (!value.IsObject() && !value.IsArray()) return ScalarText(value);
  std::vector<std::string> parts;
  if (value.IsArray()) {
    for (const auto& element : value.GetArray()) parts.push_back(TextOf(element));
    return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
  }
  for (const auto& member : value.GetObject()) {
    parts.push_back(absl::StrCat(ScalarText(member.name), ": ", TextOf(member.value)));
  }
  return absl::StrCat("{", absl::StrJoin(parts, ", "), "}");
}

}  // namespace

std::optional<std::string> WithFix(absl::string_view config_json, absl::string_view pointer,
                                   absl::string_view fix) {
  rapidjson::Document config;
  rapidjson::Document members(&config.GetAllocator());
  if (!Parse(config_json, &config) || !Parse(absl::StrCat("{", fix, "}"), &members)) {
    return std::nullopt;
  }
  rapidjson::Value* const object = rapidjson::Pointer(pointer.data(), pointer.size()).Get(config);
  if (object == nullptr || !object->IsObject()) return std::nullopt;
  for (auto& member : members.GetObject()) {
    object->RemoveMember(member.name);
    object->AddMember(member.name, member.value, config.GetAllocator());
  }
  return TextOf(config);
}

bool FixesContradict(absl::string_view config_json, const v1::Finding& one,
                     const v1::Finding& other) {
  const auto pasted = [&](const v1::Finding& first,
                          const v1::Finding& second) -> std::optional<std::string> {
    const auto once = WithFix(config_json, first.fix_pointer(), first.fix());
    return once ? WithFix(*once, second.fix_pointer(), second.fix()) : std::nullopt;
  };
  const std::optional<std::string> ends_with_other = pasted(one, other);
  const std::optional<std::string> ends_with_one = pasted(other, one);
  rapidjson::Document a;
  rapidjson::Document b;
  if (!ends_with_other || !ends_with_one) return false;
  if (!Parse(*ends_with_other, &a) || !Parse(*ends_with_one, &b)) return false;
  return a != b;
}

std::optional<std::string> ValueAt(absl::string_view config_json, absl::string_view pointer) {
  rapidjson::Document config;
  if (!Parse(config_json, &config)) return std::nullopt;
  const rapidjson::Value* const value =
      rapidjson::Pointer(pointer.data(), pointer.size()).Get(config);
  if (value == nullptr) return std::nullopt;
  return TextOf(*value);
}

std::string MapWith(absl::string_view map, absl::string_view old,
                    std::span<const absl::string_view> kept) {
  rapidjson::Document result;
  rapidjson::Document before(&result.GetAllocator());
  if (!Parse(map, &result) || !Parse(old, &before)) return "null";
  const bool has_map = result.IsObject();
  if (!has_map) result.SetObject();
  bool any_kept = false;
  for (const absl::string_view key : kept) {
    const rapidjson::Value name(key.data(), static_cast<rapidjson::SizeType>(key.size()),
                                result.GetAllocator());
    result.RemoveMember(name);
    if (!before.IsObject() || !before.HasMember(name)) continue;
    any_kept = true;
    result.AddMember(rapidjson::Value(name, result.GetAllocator()), before[name],
                     result.GetAllocator());
  }
  if (!has_map && !any_kept) return "null";
  if (!has_map) result.AddMember("rope_type", "default", result.GetAllocator());
  return TextOf(result);
}

}  // namespace posenc::cli
