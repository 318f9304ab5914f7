#include "client/cli/encoding_lines.h"

#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/cli/json.h"
#include "client/cli/names.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace posenc::cli {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr size_t kShownRuns = 3;   // of layers, at the front
constexpr int kShownElements = 4;  // longer lists are counted

std::string FieldsText(const Message& message);

// SLOPE_ROUNDING_BLOOM is bloom: the name without what all values of the enum begin with, which
// its UNSPECIFIED shows.
std::string EnumText(const EnumValueDescriptor& value) {
  const absl::string_view zero = value.type()->FindValueByNumber(0)->name();
  return absl::AsciiStrToLower(
      absl::StripPrefix(value.name(), absl::StripSuffix(zero, "UNSPECIFIED")));
}

std::string ScalarText(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return ExactDouble(reflection.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(reflection.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumText(*reflection.GetEnum(message, &field));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return absl::StrCat("(", FieldsText(reflection.GetMessage(message, &field)), ")");
    default:
      return "...";
  }
}

std::string ElementText(const Message& message, const FieldDescriptor& field, int i) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return ExactDouble(reflection.GetRepeatedDouble(message, &field, i));
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(reflection.GetRepeatedInt64(message, &field, i));
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumText(*reflection.GetRepeatedEnum(message, &field, i));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetRepeatedString(message, &field, i);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return absl::StrCat("(", FieldsText(reflection.GetRepeatedMessage(message, &field, i)), ")");
    default:
      return "...";
  }
}

std::string FieldText(const Message& message, const FieldDescriptor& field) {
  if (!field.is_repeated()) return ScalarText(message, field);
  const int size = message.GetReflection()->FieldSize(message, &field);
  if (size > kShownElements) return absl::StrCat("(", size, " values)");
  std::vector<std::string> elements;
  for (int i = 0; i < size; ++i) elements.push_back(ElementText(message, field, i));
  return absl::StrCat("[", absl::StrJoin(elements, " "), "]");
}

// "head_dim 128, rope_theta 10000": the fields that are set.
std::string FieldsText(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  return absl::StrJoin(fields, ", ", [&](std::string* out, const FieldDescriptor* field) {
    absl::StrAppend(out, field->name(), " ", FieldText(message, *field));
  });
}

// "0-4 6-10 12-16 ... 54-58". REQUIRES: layers are ascending and some.
std::string RunsText(const google::protobuf::RepeatedField<int64_t>& layers) {
  std::vector<std::string> runs;
  for (int begin = 0; begin < layers.size();) {
    int end = begin + 1;
    while (end < layers.size() && layers[end] == layers[end - 1] + 1) ++end;
    runs.push_back(end == begin + 1 ? absl::StrCat(layers[begin])
                                    : absl::StrCat(layers[begin], "-", layers[end - 1]));
    begin = end;
  }
  if (runs.size() > kShownRuns + 2) {
    runs.erase(runs.begin() + kShownRuns, runs.end() - 1);
    runs.insert(runs.end() - 1, "...");
  }
  return absl::StrJoin(runs, " ");
}

std::string LayersText(const google::protobuf::RepeatedField<int64_t>& layers) {
  if (layers.empty()) return "all layers";
  return absl::StrCat(layers.size(), layers.size() == 1 ? " layer (" : " layers (",
                      RunsText(layers), ")");
}

// "text full_attention: rope proportional, 10 layers (5 11 17 ... 59), 262144 positions, bf16"
std::string Headline(const v1::ResolvedEncoding& encoding) {
  std::string text =
      absl::StrCat(encoding.tower(), " ", encoding.layer_type(), ": ", encoding.kind());
  for (const std::string& name : {encoding.rope_type(), encoding.variant()}) {
    if (!name.empty()) absl::StrAppend(&text, " ", name);
  }
  absl::StrAppend(&text, ", ", LayersText(encoding.layers()));
  if (!encoding.nope_layers().empty()) {
    absl::StrAppend(&text, ", none in ", LayersText(encoding.nope_layers()));
  }
  if (encoding.max_position_embeddings() > 0) {
    absl::StrAppend(&text, ", ", encoding.max_position_embeddings(), " positions");
  }
  if (!encoding.dtype().empty()) absl::StrAppend(&text, ", ", encoding.dtype());
  return text;
}

// What the spec has, or in its place the checkpoint; and what is done beside the table.
std::string Details(const v1::ResolvedEncoding& encoding) {
  std::vector<std::string> parts;
  const auto add = [&](bool is_set, absl::string_view name, const Message& message) {
    if (is_set) parts.push_back(absl::StrCat(name, name.empty() ? "" : " ", FieldsText(message)));
  };
  std::vector<const FieldDescriptor*> family;
  encoding.spec().GetReflection()->ListFields(encoding.spec(), &family);
  if (!family.empty()) {
    add(true, "", encoding.spec().GetReflection()->GetMessage(encoding.spec(), family.front()));
  }
  add(encoding.has_learned(), "learned", encoding.learned());
  add(encoding.has_relative(), "relative", encoding.relative());
  add(encoding.has_mrope(), "mrope", encoding.mrope());
  add(encoding.has_query_scale(), "query_scale", encoding.query_scale());
  if (HasAttentionFactor(encoding.spec()) && encoding.attention_factor() != 1) {
    parts.push_back(absl::StrCat("times ", ExactDouble(encoding.attention_factor())));
  }
  return absl::StrJoin(parts, "; ");
}

}  // namespace

std::string EncodingLines(const v1::ResolveModelConfigResponse& response) {
  std::string text = absl::StrCat(response.model_type(), "\n");
  for (const v1::ResolvedEncoding& encoding : response.encodings()) {
    absl::StrAppend(&text, Headline(encoding), "\n");
    const std::string details = Details(encoding);
    if (!details.empty()) absl::StrAppend(&text, "  ", details, "\n");
  }
  for (const v1::Finding& finding : response.findings()) {
    absl::StrAppend(&text, FindingLine(finding), "\n");
  }
  return text;
}

}  // namespace posenc::cli
