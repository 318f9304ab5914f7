#include "client/cli/compare_layers.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace posenc::cli {
namespace {

std::string KindName(const v1::ResolvedEncoding& encoding) {
  return encoding.kind() == "rope" ? "RoPE" : encoding.kind();
}

// What each layer of a tower has; empty where all have the same, whose number is not said.
struct TowerLayers {
  const v1::ResolvedEncoding* first = nullptr;
  std::map<int64_t, std::string> names;
};

// By tower. An encoding that a tower has beside others of its layers (MPNet's buckets) has no list.
std::map<std::string, TowerLayers> LayersOf(const v1::ResolveModelConfigResponse& response) {
  std::map<std::string, TowerLayers> towers;
  for (const v1::ResolvedEncoding& encoding : response.encodings()) {
    TowerLayers& tower = towers[encoding.tower()];
    if (tower.first == nullptr) tower.first = &encoding;
    const bool all = encoding.layer_type() == "all";
    const std::string name = all ? KindName(encoding) : encoding.layer_type();
    for (const int64_t layer : encoding.layers()) tower.names[layer] = name;
    for (const int64_t layer : encoding.nope_layers()) tower.names.emplace(layer, "no RoPE");
  }
  return towers;
}

// In a tower without lists every layer is alike.
std::string NameOf(const TowerLayers& tower, int64_t layer) {
  if (tower.names.empty()) return KindName(*tower.first);
  const auto name = tower.names.find(layer);
  return name == tower.names.end() ? "no layer" : name->second;
}

}  // namespace

std::vector<Difference> CompareLayers(const v1::ResolveModelConfigResponse& base,
                                      const v1::ResolveModelConfigResponse& model) {
  std::vector<Difference> differences;
  const std::map<std::string, TowerLayers> of_base = LayersOf(base);
  for (const auto& [name, tower] : LayersOf(model)) {
    const auto like = of_base.find(name);
    if (like == of_base.end()) continue;
    std::vector<int64_t> differing;
    std::map<int64_t, std::string> layers = tower.names;
    layers.insert(like->second.names.begin(), like->second.names.end());
    for (const auto& [layer, unused] : layers) {
      if (NameOf(tower, layer) != NameOf(like->second, layer)) differing.push_back(layer);
    }
    if (differing.empty()) continue;
    Differences found(*like->second.first, *tower.first);
    const std::string here = NameOf(tower, differing.front());
    const std::string there = NameOf(like->second, differing.front());
    v1::Finding& finding = found.Add(
        "base-layers-differ",
        absl::StrCat(differing.size(), " of ", layers.size(), " layers differ, from layer ",
                     differing.front(), ": ", here, ", in the base ", there),
        {"layers"}, "kind");
    finding.set_found(here);
    finding.set_expected(there);
    found.all().front().parts = {name};
    differences.push_back(found.all().front());
  }
  return differences;
}

}  // namespace posenc::cli
