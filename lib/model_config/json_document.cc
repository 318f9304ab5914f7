#include "lib/model_config/json_document.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "lib/base/status.h"

namespace posenc {
namespace {

constexpr size_t kMarkBytes = 4096;

// Smaller objects are searched member by member.
constexpr int32_t kIndexedMembers = 64;

// What of a value an error shows.
constexpr size_t kShownBytes = 60;

std::string EscapedToken(absl::string_view key) {
  return absl::StrReplaceAll(key, {{"~", "~0"}, {"/", "~1"}});
}

std::string Shortened(absl::string_view text) {
  if (text.size() <= kShownBytes) return std::string(text);
  // Not inside a UTF-8 sequence.
  size_t end = kShownBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

}  // namespace

std::pair<int, int> JsonLineAndColumn(absl::string_view text, size_t offset) {
  const absl::string_view before = text.substr(0, offset);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  const size_t column = newline == absl::string_view::npos ? offset : offset - newline - 1;
  return {static_cast<int>(lines) + 1, static_cast<int>(column) + 1};
}

absl::Status JsonDocument::Overlay(absl::string_view text, absl::string_view field,
                                   const std::vector<absl::string_view>& whole) {
  ASSIGN_OR_RETURN(const int32_t from, ParseInto(text, field));
  MergeObject(0, from, whole);
  return absl::OkStatus();
}

std::vector<JsonDocument::LineMark> JsonDocument::MarkLines(absl::string_view text) {
  std::vector<LineMark> marks;
  marks.reserve(text.size() / kMarkBytes + 1);
  LineMark mark = {0, 0};
  for (size_t i = 0; i < text.size(); ++i) {
    if (i % kMarkBytes == 0) marks.push_back(mark);
    if (text[i] == '\n') mark = {mark.newlines + 1, static_cast<uint32_t>(i + 1)};
  }
  return marks;
}

std::pair<int, int> JsonDocument::LineAndColumn(const JsonNode& node) const {
  const Source& source = sources_[node.source];
  if (source.marks.empty()) return {0, 0};
  const size_t mark = std::min(node.begin / kMarkBytes, source.marks.size() - 1);
  uint32_t newlines = source.marks[mark].newlines;
  size_t line_begin = source.marks[mark].line_begin;
  for (size_t i = mark * kMarkBytes; i < node.begin; ++i) {
    if (source.text[i] != '\n') continue;
    ++newlines;
    line_begin = i + 1;
  }
  return {static_cast<int>(newlines) + 1, static_cast<int>(node.begin - line_begin) + 1};
}

void JsonDocument::IndexMembers(int32_t object) {
  if (at(object).count < kIndexedMembers) return;
  std::vector<int32_t>& members = members_[object];
  members.clear();
  for (int32_t i = at(object).first_child; i >= 0; i = at(i).next) members.push_back(i);
  std::sort(members.begin(), members.end(),
            [&](int32_t a, int32_t b) { return at(a).key < at(b).key; });
}

int32_t JsonDocument::FindMember(int32_t object, absl::string_view key) const {
  if (const auto indexed = members_.find(object); indexed != members_.end()) {
    const auto found =
        std::lower_bound(indexed->second.begin(), indexed->second.end(), key,
                         [&](int32_t member, absl::string_view k) { return at(member).key < k; });
    return found != indexed->second.end() && at(*found).key == key ? *found : -1;
  }
  for (int32_t i = at(object).first_child; i >= 0; i = at(i).next) {
    if (at(i).key == key) return i;
  }
  return -1;
}

// The recursion is bounded by kMaxConfigDepth; the map keeps it linear.
void JsonDocument::MergeObject(int32_t into, int32_t from,
                               const std::vector<absl::string_view>& whole) {
  absl::flat_hash_map<absl::string_view, int32_t> members;
  for (int32_t i = at(into).first_child; i >= 0; i = at(i).next) members[at(i).key] = i;
  for (int32_t i = at(from).first_child; i >= 0;) {
    JsonNode& node = at(i);
    const int32_t next = node.next;
    const auto member = members.find(node.key);
    node.next = -1;
    if (member == members.end()) {
      JsonNode& parent = at(into);
      node.parent = into;
      node.position = parent.count++;
      (parent.first_child < 0 ? parent.first_child : at(parent.last_child).next) = i;
      parent.last_child = i;
    } else if (JsonNode& old = at(member->second);
               old.type == JsonValue::Type::kObject && node.type == JsonValue::Type::kObject &&
               std::find(whole.begin(), whole.end(), node.key) == whole.end()) {
      MergeObject(member->second, i, whole);
    } else {
      const JsonNode place = old;
      old = node;
      old.parent = place.parent;
      old.next = place.next;
      old.position = place.position;
      for (int32_t child = old.first_child; child >= 0; child = at(child).next) {
        at(child).parent = member->second;
      }
    }
    i = next;
  }
  IndexMembers(into);
}

std::string JsonDocument::Pointer(int32_t index) const {
  std::vector<std::string> tokens;
  for (; index >= 0;) {
    const JsonNode& node = at(index);
    if (node.parent >= 0) {
      const bool member = at(node.parent).type == JsonValue::Type::kObject;
      tokens.push_back(member ? EscapedToken(node.key) : absl::StrCat(node.position));
    }
    index = node.parent;
  }
  std::string pointer = sources_[at(0).source].pointer;
  for (auto token = tokens.rbegin(); token != tokens.rend(); ++token) {
    absl::StrAppend(&pointer, "/", *token);
  }
  return pointer;
}

const JsonNode& JsonValue::node() const { return document_->at(index_); }

JsonValue::Type JsonValue::type() const {
  return document_ == nullptr ? Type::kAbsent : node().type;
}

bool JsonValue::truthy() const {
  switch (type()) {
    case Type::kAbsent:
    case Type::kNull:
      return false;
    case Type::kBool:
      return bool_value();
    case Type::kNumber:
      return number() != 0;
    case Type::kString:
      return !string().empty();
    case Type::kArray:
    case Type::kObject:
      return size() > 0;
  }
  return false;
}

bool JsonValue::bool_value() const { return node().boolean; }
double JsonValue::number() const { return node().number; }
absl::string_view JsonValue::string() const { return node().text; }
absl::string_view JsonValue::key() const { return node().key; }

std::optional<int64_t> JsonValue::integer() const {
  if (!is_number()) return std::nullopt;
  const JsonNode& self = node();
  if (self.integral) return self.integer;
  // 4096.0 and 1e6 are integers too: not every writer keeps the two apart.
  constexpr double kExact = 0x1p53;
  if (!(self.number >= -kExact && self.number <= kExact)) return std::nullopt;
  const int64_t truncated = static_cast<int64_t>(self.number);
  if (static_cast<double>(truncated) != self.number) return std::nullopt;
  return truncated;
}

size_t JsonValue::size() const { return present() ? static_cast<size_t>(node().count) : 0; }

std::vector<JsonValue> JsonValue::children() const {
  std::vector<JsonValue> result;
  if (!present()) return result;
  result.reserve(size());
  for (int32_t i = node().first_child; i >= 0; i = document_->at(i).next) {
    result.push_back(JsonValue(document_, i));
  }
  return result;
}

JsonValue JsonValue::operator[](absl::string_view key) const {
  if (!is_object()) return JsonValue();
  const int32_t found = document_->FindMember(index_, key);
  return found < 0 ? JsonValue() : JsonValue(document_, found);
}

JsonValue JsonValue::parent() const {
  if (!present() || node().parent < 0) return JsonValue();
  return JsonValue(document_, node().parent);
}

std::string JsonValue::pointer() const {
  return present() ? document_->Pointer(index_) : std::string();
}

std::string JsonValue::PointerOf(absl::string_view key) const {
  return absl::StrCat(pointer(), "/", EscapedToken(key));
}

std::string JsonValue::field() const {
  return present() ? absl::StrCat(document_->sources_[node().source].field, pointer())
                   : std::string();
}

std::string JsonValue::FieldOf(absl::string_view key) const {
  return absl::StrCat(field(), "/", EscapedToken(key));
}

int JsonValue::line() const {
  if (!present()) return 0;
  const JsonDocument::Source& source = document_->sources_[node().source];
  return source.kind == JsonDocument::Source::Kind::kConfig ? document_->LineAndColumn(node()).first
                                                            : 0;
}

int JsonValue::column() const {
  if (!present()) return 0;
  const JsonDocument::Source& source = document_->sources_[node().source];
  return source.kind == JsonDocument::Source::Kind::kConfig
             ? document_->LineAndColumn(node()).second
             : 0;
}

bool JsonValue::in_overrides() const {
  return present() &&
         document_->sources_[node().source].kind == JsonDocument::Source::Kind::kOverlay;
}

bool JsonValue::is_shortened() const {
  return present() && node().end - node().begin > kShownBytes;
}

std::string JsonValue::Text() const {
  if (!present()) return "";
  const JsonNode& self = node();
  const absl::string_view text = document_->sources_[self.source].text;
  return Shortened(text.substr(self.begin, self.end - self.begin));
}

std::string JsonValue::Describe() const {
  switch (type()) {
    case Type::kAbsent:
      return "nothing";
    case Type::kString:
      return absl::StrCat("string ", Text());
    case Type::kArray:
      return "a list";
    case Type::kObject:
      return "an object";
    case Type::kNull:
    case Type::kBool:
    case Type::kNumber:
      return Text();
  }
  return "";
}

}  // namespace posenc
