#include "client/cli/compare_fixes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/apply_fix.h"
#include "client/cli/compare.h"
#include "client/cli/exit_code.h"
#include "lib/model_config/findings.h"

namespace posenc::cli {
namespace {

// Nobody pastes more.
constexpr size_t kMaxFixBytes = 4096;

// Keys that say more than positions: which of the model's numbers is wrong, if any, is not known.
constexpr std::array<absl::string_view, 9> kOtherKeys = {
    "model_type", "num_hidden_layers", "num_layers", "n_layer",   "hidden_size",
    "n_embd",     "d_model",           "dim",        "image_size"};

// Of a map these are not the scaling, and stay as the model has them.
constexpr std::array<absl::string_view, 2> kNotScaling = {"rope_theta", "partial_rotary_factor"};

struct Fix {
  std::string pointer;  // of the object
  std::string members;
};

std::string KeyOf(absl::string_view pointer) {
  return std::string(pointer.substr(pointer.rfind('/') + 1));
}

// The base's value of a fact, for that key of the model's. None where the base's file has none.
std::optional<std::string> BaseValue(const ResolvedFile& base, const Difference& difference,
                                     const std::string& fact, absl::string_view key) {
  const v1::FactPlace* place = FindPlace(*difference.base, fact);
  const bool written = place != nullptr && !place->found().empty() && place->line() > 0;
  if (written && KeyOf(place->pointer()) == key) return ValueAt(base.config_json, place->pointer());
  // Other names of the base, or the default of the class.
  const v1::RopeSpec& rope = difference.base->spec().rope();
  if (fact == "rope_theta" && rope.has_rope_theta()) return ExactDouble(rope.rope_theta());
  if (fact == "head_dim" && rope.has_head_dim()) return absl::StrCat(rope.head_dim());
  const v1::QueryScale& scale = difference.base->query_scale();
  if (fact == "query_scale.beta") return ExactDouble(scale.beta());
  if (fact == "query_scale.length") return absl::StrCat(scale.length());
  return std::nullopt;
}

// A key of the model's file for each fact, all in one object.
std::optional<Fix> FixOfKeys(const ResolvedFile& base, const ResolvedFile& model,
                             const Difference& difference) {
  Fix fix;
  std::vector<std::string> members;
  for (const std::string& fact : difference.facts) {
    const v1::FactPlace* place = FindPlace(*difference.model, fact);
    std::string pointer = place == nullptr ? "" : place->pointer();
    const v1::FactPlace* of_base = FindPlace(*difference.base, fact);
    const v1::FactPlace* map = FindPlace(*difference.model, "scaling");
    if (place == nullptr && of_base != nullptr && map != nullptr && absl::StrContains(fact, '.')) {
      pointer = absl::StrCat(map->pointer(), "/", KeyOf(of_base->pointer()));
    }
    const std::string key = KeyOf(pointer);
    if (pointer.empty() || absl::c_linear_search(kOtherKeys, key)) continue;
    const std::optional<std::string> value = BaseValue(base, difference, fact, key);
    if (!value.has_value() || ValueAt(model.config_json, pointer) == value) continue;
    const std::string member = MemberText(key, *value);
    if (absl::c_linear_search(members, member)) continue;
    if (!members.empty() && fix.pointer != ObjectOf(pointer)) return std::nullopt;
    fix.pointer = ObjectOf(pointer);
    members.push_back(member);
  }
  if (members.empty()) return std::nullopt;
  fix.members = absl::StrJoin(members, ", ");
  return fix;
}

// The whole map of the scaling, as in the base, with what the model's says beside it.
std::optional<Fix> FixOfMap(const ResolvedFile& base, const ResolvedFile& model,
                            const Difference& difference) {
  const bool scaled = absl::c_any_of(difference.facts, [](const std::string& fact) {
    return fact == "rope_type" || fact == "scaling" || fact == "mrope_section" ||
           absl::StrContains(fact, '.') || absl::StartsWith(fact, "query_scale");
  });
  const v1::FactPlace* place = FindPlace(*difference.model, "scaling");
  const v1::FactPlace* of_base = FindPlace(*difference.base, "scaling");
  if (!scaled || place == nullptr || of_base == nullptr) return std::nullopt;
  const std::string map =
      MapWith(ValueAt(base.config_json, of_base->pointer()).value_or("null"),
              ValueAt(model.config_json, place->pointer()).value_or("null"), kNotScaling);
  return Fix{ObjectOf(place->pointer()), MemberText(KeyOf(place->pointer()), map)};
}

using Names = std::set<std::string>;

// Rule and part of each, so that what is left of a difference is found again.
Names NamesOf(const std::vector<Difference>& differences, v1::Severity least) {
  Names names;
  for (const Difference& difference : differences) {
    if (difference.finding.severity() < least) continue;
    const std::string& rule = difference.finding.rule();
    if (difference.parts.empty())
      names.insert(absl::StrCat(rule, " ", difference.finding.message()));
    for (const std::string& part : difference.parts) names.insert(absl::StrCat(rule, " ", part));
  }
  return names;
}

Names ErrorsOf(const v1::ResolveModelConfigResponse& response,
               const std::vector<Difference>& differences) {
  Names names = NamesOf(differences, v1::SEVERITY_ERROR);
  for (const v1::Finding& finding : response.findings()) {
    if (finding.severity() == v1::SEVERITY_ERROR) {
      names.insert(absl::StrCat(finding.rule(), " ", finding.pointer()));
    }
  }
  return names;
}

bool IsSubset(const Names& some, const Names& all) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

}  // namespace

absl::Status OfferFixes(const Client& client, const ResolvedFile& base, const ResolvedFile& model,
                        const Resolver& resolve, std::vector<Difference>* differences) {
  const Names errors = ErrorsOf(model.response, *differences);
  for (Difference& difference : *differences) {
    if (difference.base == nullptr || difference.model == nullptr) continue;
    for (const std::optional<Fix>& fix :
         {FixOfKeys(base, model, difference), FixOfMap(base, model, difference)}) {
      if (!fix.has_value() || fix->members.empty() || fix->members.size() > kMaxFixBytes) continue;
      const std::optional<std::string> fixed =
          WithFix(model.config_json, fix->pointer, fix->members);
      if (!fixed.has_value()) continue;
      const absl::StatusOr<v1::ResolveModelConfigResponse> after = resolve(*fixed);
      if (!after.ok() && ExitCodeOf(after.status()) == kRefused) continue;
      if (!after.ok()) return after.status();
      const absl::StatusOr<std::vector<Difference>> left =
          CompareWithBase(client, base.response, *after);
      if (!left.ok()) return left.status();
      const Names names = NamesOf({difference}, v1::SEVERITY_NOTE);
      const Names still = NamesOf(*left, v1::SEVERITY_NOTE);
      const bool ended =
          absl::c_none_of(names, [&](const std::string& name) { return still.count(name) > 0; });
      if (!ended || !IsSubset(ErrorsOf(*after, *left), errors)) continue;
      difference.finding.set_fix(fix->members);
      difference.finding.set_fix_pointer(fix->pointer);
      break;
    }
  }
  return absl::OkStatus();
}

}  // namespace posenc::cli
