// A JSON file that somebody else wrote, read carefully.
//
// RapidJSON's events, parsed iteratively, become a flat tree that remembers where
// each value stands in the file, so that a finding can point at it. What Python's
// json.load reads is read (NaN and Infinity too); what it would silently mend is
// refused: of two equal keys it keeps the last.
#ifndef POSENC_LIB_MODEL_CONFIG_JSON_DOCUMENT_H_
#define POSENC_LIB_MODEL_CONFIG_JSON_DOCUMENT_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace posenc {

// The largest real configs (21,841 labels in both directions) are 2 MB with 44
// thousand values. The bounds keep a hostile file below 64 MiB of memory.
inline constexpr size_t kMaxConfigBytes = size_t{8} << 20;
inline constexpr size_t kMaxConfigValues = size_t{1} << 18;
inline constexpr int kMaxConfigDepth = 128;

class JsonDocument;
struct JsonNode;

// One value of a document, or the absence of one. A view: cheap to copy, valid as
// long as the document.
class JsonValue {
 public:
  enum class Type : uint8_t { kAbsent, kNull, kBool, kNumber, kString, kArray, kObject };

  JsonValue() = default;  // absent

  Type type() const;
  bool present() const { return type() != Type::kAbsent; }
  bool is_null() const { return type() == Type::kNull; }
  bool is_bool() const { return type() == Type::kBool; }
  bool is_number() const { return type() == Type::kNumber; }
  bool is_string() const { return type() == Type::kString; }
  bool is_array() const { return type() == Type::kArray; }
  bool is_object() const { return type() == Type::kObject; }
  // Neither absent nor null.
  bool has_value() const { return present() && !is_null(); }
  // Python's truth: not absent, null, false, 0, "" or empty.
  bool truthy() const;

  bool bool_value() const;                 // REQUIRES: is_bool()
  double number() const;                   // REQUIRES: is_number(); may be NaN or infinite
  std::optional<int64_t> integer() const;  // a number that is one and fits
  absl::string_view string() const;        // REQUIRES: is_string(); decoded

  size_t size() const;                      // elements or members; 0 for the rest
  std::vector<JsonValue> children() const;  // in file order
  // The member of that name; absent when there is none or this is no object.
  JsonValue operator[](absl::string_view key) const;

  // As a member: its name. REQUIRES: the parent is an object.
  absl::string_view key() const;

  // What holds it; absent of the root.
  JsonValue parent() const;

  // RFC 6901, "" for the root. PointerOf(key): of a member, there or not.
  std::string pointer() const;
  std::string PointerOf(absl::string_view key) const;
  // What an error calls it: `config_json/rope_scaling/factor`.
  std::string field() const;
  std::string FieldOf(absl::string_view key) const;
  // Where it begins, 1-based, columns in bytes. 0 when it is not in the file.
  int line() const;
  int column() const;
  // Whether it came with an overlay.
  bool in_overrides() const;
  // As it stands in the file (scalars, shortened), for "got ..." in a message:
  // `8`, `string "8"`, `null`, `a list`, `an object`, `nothing`.
  std::string Describe() const;
  // As it stands in the file, shortened, and whether that is not all of it.
  std::string Text() const;
  bool is_shortened() const;

 private:
  friend class JsonDocument;
  friend class JsonEvents;
  JsonValue(const JsonDocument* document, int32_t index) : document_(document), index_(index) {}

  const JsonNode& node() const;

  const JsonDocument* document_ = nullptr;
  int32_t index_ = -1;
};

// How the document holds it. Siblings are a linked list, so that a node is appended in O(1) and an
// overlay only relinks.
struct JsonNode {
  JsonValue::Type type = JsonValue::Type::kAbsent;
  bool boolean = false;
  bool integral = false;  // written without point and exponent, and fits
  uint8_t source = 0;     // index in sources_
  uint32_t begin = 0;     // bytes of the source, [begin, end)
  uint32_t end = 0;
  int32_t parent = -1;
  int32_t first_child = -1;
  int32_t last_child = -1;
  int32_t next = -1;
  int32_t count = 0;
  int32_t position = 0;  // among its siblings
  absl::string_view key;
  absl::string_view text;  // of a string, decoded
  double number = 0;
  int64_t integer = 0;
};

class JsonDocument {
 public:
  // INVALID_ARGUMENT for what is not one JSON object within the bounds; `field` is
  // what errors call the document. Memory and time are O(text.size()).
  static absl::StatusOr<std::unique_ptr<JsonDocument>> Parse(absl::string_view text,
                                                             absl::string_view field);
  // A text of ours that stands for a value that a config does not have: errors and
  // findings name that pointer, and no line.
  static std::unique_ptr<JsonDocument> ParseDefault(absl::string_view text,
                                                    absl::string_view pointer);
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  JsonValue root() const { return JsonValue(this, 0); }

  // Merges another document over this one, as command lines override a config:
  // objects are merged member by member, except those whose name is in `whole`,
  // which replace what was there, as everything else does.
  absl::Status Overlay(absl::string_view text, absl::string_view field,
                       const std::vector<absl::string_view>& whole);

 private:
  friend class JsonValue;
  friend class JsonEvents;

  // Of an offset: how many newlines stand before it, and where its line begins.
  struct LineMark {
    uint32_t newlines;
    uint32_t line_begin;
  };

  // `decoded` is reserved once, so views of it stay: decoding never lengthens.
  struct Source {
    std::string field;
    std::string text;
    std::string decoded = "";
    std::string pointer = "";  // of the root
    enum class Kind : uint8_t { kConfig, kOverlay, kDefault };
    Kind kind = Kind::kConfig;  // the config alone has lines
    // Every kMarkBytes of the text, so that a place is found without reading all of it.
    std::vector<LineMark> marks = {};
  };

  JsonDocument() = default;
  // Appends the nodes of a text; returns its root.
  absl::StatusOr<int32_t> ParseInto(absl::string_view text, absl::string_view field);
  int32_t FindMember(int32_t object, absl::string_view key) const;
  // Makes FindMember fast in an object of many members. To be called when they have changed.
  void IndexMembers(int32_t object);
  static std::vector<LineMark> MarkLines(absl::string_view text);
  std::pair<int, int> LineAndColumn(const JsonNode& node) const;
  void MergeObject(int32_t into, int32_t from, const std::vector<absl::string_view>& whole);
  std::string Pointer(int32_t index) const;
  const JsonNode& at(int32_t index) const { return nodes_[static_cast<size_t>(index)]; }
  JsonNode& at(int32_t index) { return nodes_[static_cast<size_t>(index)]; }

  std::deque<Source> sources_;
  std::vector<JsonNode> nodes_;
  // The members of large objects, by key.
  absl::flat_hash_map<int32_t, std::vector<int32_t>> members_;
};

// Of an offset in a text, both 1-based, the column in bytes.
std::pair<int, int> JsonLineAndColumn(absl::string_view text, size_t offset);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_JSON_DOCUMENT_H_
