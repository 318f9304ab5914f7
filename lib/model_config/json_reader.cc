#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lib/base/status.h"
#include "lib/model_config/fact_place.h"
#include "lib/model_config/json_document.h"
#include "rapidjson/error/en.h"
#include "rapidjson/memorystream.h"
#include "rapidjson/reader.h"

namespace posenc {
namespace {

constexpr unsigned kParseFlags =
    rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag |
    rapidjson::kParseNanAndInfFlag | rapidjson::kParseValidateEncodingFlag;

absl::Status ErrorAt(absl::string_view text, size_t offset, absl::string_view field,
                     absl::string_view rule) {
  const auto [line, column] = JsonLineAndColumn(text, offset);
  v1::FactPlace place;
  place.set_fact("refused");
  place.set_in_overrides(field != "config_json");
  if (!place.in_overrides()) {
    place.set_line(line);
    place.set_column(column);
  }
  return WithFactPlace(
      FieldError(field, absl::StrCat(rule, " (line ", line, ", column ", column, ")")), place);
}

// What is refused by its first bytes, where a parser's message would not help.
absl::Status CheckText(absl::string_view text, absl::string_view field) {
  if (text.size() > kMaxConfigBytes) {
    return FieldError(field,
                      absl::StrCat("must be at most ", kMaxConfigBytes,
                                   " bytes, which no config.json reaches, got ", text.size()));
  }
  if (absl::StartsWith(text, "\xEF\xBB\xBF")) {
    return FieldError(field, "must be UTF-8 without a byte order mark, got one at the start");
  }
  if (absl::StartsWith(text, "\xFF\xFE") || absl::StartsWith(text, "\xFE\xFF")) {
    return FieldError(field, "must be UTF-8, got UTF-16");
  }
  if (text.find('\0') != absl::string_view::npos) {
    return FieldError(field, "must be JSON text, got binary data (a zero byte)");
  }
  if (absl::StartsWith(text, "version https://git-lfs.github.com/spec/")) {
    return FieldError(
        field, "must be JSON, got a Git LFS pointer; git lfs pull fetches what it stands for");
  }
  const absl::string_view trimmed = absl::StripAsciiWhitespace(text);
  if (trimmed.empty()) return FieldError(field, "must be a JSON object, got nothing");
  return absl::OkStatus();
}

}  // namespace

// Appends a node an event. Returning false stops the parser; `status` says why.
class JsonEvents {
 public:
  JsonEvents(JsonDocument* document, uint8_t source, const rapidjson::MemoryStream* stream)
      : document_(document), source_(source), stream_(stream) {}

  const absl::Status& status() const { return status_; }

  bool Null() { return Scalar(JsonValue::Type::kNull) != nullptr; }
  bool Bool(bool value) {
    JsonNode* node = Scalar(JsonValue::Type::kBool);
    if (node == nullptr) return false;
    node->boolean = value;
    return true;
  }
  bool RawNumber(const char*, rapidjson::SizeType, bool) {
    JsonNode* node = Scalar(JsonValue::Type::kNumber);
    if (node == nullptr) return false;
    const absl::string_view written = text().substr(node->begin, node->end - node->begin);
    // Too large a number is an infinity, as in Python.
    if (!absl::SimpleAtod(written, &node->number)) return false;
    node->integral = absl::SimpleAtoi(written, &node->integer);
    return true;
  }
  // Never called, since numbers come as text.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(int64_t) { return false; }
  bool Uint64(uint64_t) { return false; }
  bool Double(double) { return false; }

  bool String(const char* data, rapidjson::SizeType size, bool) {
    JsonNode* node = Scalar(JsonValue::Type::kString);
    if (node == nullptr) return false;
    node->text = Decoded(data, size);
    return true;
  }
  bool Key(const char* data, rapidjson::SizeType size, bool) {
    key_ = Decoded(data, size);
    last_end_ = stream_->Tell();
    return true;
  }
  bool StartObject() { return Open(JsonValue::Type::kObject); }
  bool StartArray() { return Open(JsonValue::Type::kArray); }
  bool EndArray(rapidjson::SizeType) { return Close(); }
  bool EndObject(rapidjson::SizeType) {
    if (!CheckKeys()) return false;
    document_->IndexMembers(open_);
    return Close();
  }

 private:
  absl::string_view text() const { return document_->sources_[source_].text; }
  JsonNode& open() { return document_->at(open_); }

  absl::string_view Decoded(const char* data, size_t size) {
    std::string& all = document_->sources_[source_].decoded;
    const size_t begin = all.size();
    all.append(data, size);
    return absl::string_view(all).substr(begin, size);
  }

  JsonNode* Scalar(JsonValue::Type type) {
    JsonNode* node = Append(type);
    if (node != nullptr) last_end_ = node->end = static_cast<uint32_t>(stream_->Tell());
    return node;
  }

  // The reader tells where it is, which is behind the value. It begins at the
  // first byte after the last one that no separator explains.
  JsonNode* Append(JsonValue::Type type) {
    std::vector<JsonNode>& nodes = document_->nodes_;
    if (nodes.size() >= kMaxConfigValues) {
      status_ = FieldError(document_->sources_[source_].field,
                           absl::StrCat("must have at most ", kMaxConfigValues, " values"));
      return nullptr;
    }
    const int32_t index = static_cast<int32_t>(nodes.size());
    JsonNode& node = nodes.emplace_back();
    node.type = type;
    node.source = source_;
    node.begin = static_cast<uint32_t>(text().find_first_not_of(" \t\r\n,:", last_end_));
    node.parent = open_;
    if (open_ >= 0) {
      node.key = key_;
      Link(index);
    }
    return &node;
  }

  void Link(int32_t index) {
    JsonNode& parent = open();
    JsonNode& node = document_->at(index);
    node.position = parent.count++;
    if (parent.first_child < 0) {
      parent.first_child = index;
    } else {
      document_->at(parent.last_child).next = index;
    }
    parent.last_child = index;
  }

  // The iterative reader takes a bracket only after its event.
  size_t BehindBracket() const { return stream_->Tell() + 1; }

  bool Open(JsonValue::Type type) {
    if (++depth_ > kMaxConfigDepth) {
      status_ =
          ErrorAt(text(), stream_->Tell(), document_->sources_[source_].field,
                  absl::StrCat("must not be nested deeper than ", kMaxConfigDepth, " levels"));
      return false;
    }
    if (Append(type) == nullptr) return false;
    open_ = static_cast<int32_t>(document_->nodes_.size()) - 1;
    last_end_ = BehindBracket();
    return true;
  }

  bool Close() {
    --depth_;
    last_end_ = BehindBracket();
    open().end = static_cast<uint32_t>(last_end_);
    open_ = open().parent;
    return true;
  }

  bool CheckKeys() {
    std::vector<std::pair<absl::string_view, int32_t>> keys;
    keys.reserve(static_cast<size_t>(open().count));
    for (int32_t i = open().first_child; i >= 0;) {
      const JsonNode& child = document_->at(i);
      keys.emplace_back(child.key, i);
      i = child.next;
    }
    std::sort(keys.begin(), keys.end());
    for (size_t i = 1; i < keys.size(); ++i) {
      if (keys[i].first != keys[i - 1].first) continue;
      const JsonValue first(document_, keys[i - 1].second);
      const JsonValue second(document_, keys[i].second);
      status_ = FieldError(second.field(), absl::StrCat("is given twice, on lines ", first.line(),
                                                        " and ", second.line()));
      return false;
    }
    return true;
  }

  JsonDocument* const document_;
  const uint8_t source_;
  const rapidjson::MemoryStream* const stream_;
  absl::Status status_;
  absl::string_view key_;
  int32_t open_ = -1;  // innermost object or array
  int depth_ = 0;
  size_t last_end_ = 0;  // behind the last value, key or bracket
};

absl::StatusOr<std::unique_ptr<JsonDocument>> JsonDocument::Parse(absl::string_view text,
                                                                  absl::string_view field) {
  std::unique_ptr<JsonDocument> document(new JsonDocument);
  RETURN_IF_ERROR(document->ParseInto(text, field).status());
  return document;
}

std::unique_ptr<JsonDocument> JsonDocument::ParseDefault(absl::string_view text,
                                                         absl::string_view pointer) {
  std::unique_ptr<JsonDocument> document(new JsonDocument);
  // A text that does not parse leaves an absent root, which a test would see.
  if (!document->ParseInto(text, "config_json").ok()) return document;
  document->sources_[0].pointer = std::string(pointer);
  document->sources_[0].kind = Source::Kind::kDefault;
  return document;
}

absl::StatusOr<int32_t> JsonDocument::ParseInto(absl::string_view text, absl::string_view field) {
  RETURN_IF_ERROR(CheckText(text, field));
  const uint8_t source = static_cast<uint8_t>(sources_.size());
  sources_.push_back({std::string(field), std::string(text)});
  if (source != 0) sources_.back().kind = Source::Kind::kOverlay;
  sources_.back().marks = MarkLines(text);
  sources_.back().decoded.reserve(text.size());
  const int32_t first = static_cast<int32_t>(nodes_.size());
  // A value takes two bytes of text at least, but for the first.
  nodes_.reserve(nodes_.size() + std::min(text.size() / 2 + 1, kMaxConfigValues));

  const std::string& owned = sources_.back().text;
  rapidjson::MemoryStream stream(owned.data(), owned.size());
  JsonEvents events(this, source, &stream);
  rapidjson::Reader reader;
  const rapidjson::ParseResult result = reader.Parse<kParseFlags>(stream, events);
  if (!events.status().ok()) return events.status();
  if (result.IsError()) {
    absl::string_view reason = rapidjson::GetParseError_En(result.Code());
    absl::ConsumeSuffix(&reason, ".");
    return ErrorAt(owned, result.Offset(), field, absl::StrCat("must be JSON: ", reason));
  }
  const JsonValue top(this, first);
  if (!top.is_object()) {
    return FieldError(field, absl::StrCat("must be a JSON object, got ", top.Describe()));
  }
  return first;
}

}  // namespace posenc
