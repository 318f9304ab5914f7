#include "lib/families/mrope_positions.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/family.h"
#include "lib/families/grid_selection.h"
#include "lib/families/selection.h"

namespace posenc {
namespace {

constexpr absl::string_view kRuns = "selection.token_runs";
constexpr int64_t kMaxTokens = kMaxExplicitCoordinates / kMropeAxes;
constexpr double kMaxFrameInterval = 0x1p20;

// Positions as they are laid out, run by run.
class Layer {
 public:
  Layer(int64_t start, int64_t merge_size, bool advance_to_max)
      : next_(start), largest_(start - 1), merge_size_(merge_size), to_max_(advance_to_max) {
    for (int64_t axis = 0; axis < kMropeAxes; ++axis) ids_.add_axes();
  }

  absl::Status AddText(const std::string& path, int64_t tokens) {
    RETURN_IF_ERROR(CheckInRange(path, tokens, int64_t{0}, kMaxTokens));
    RETURN_IF_ERROR(CheckRoom(path, tokens, next_ + tokens - 1));
    for (int64_t i = 0; i < tokens; ++i) Add(next_ + i, next_ + i, next_ + i);
    next_ += tokens;
    return absl::OkStatus();
  }

  // REQUIRES: the sides are in [0, kMaxGridSide].
  absl::Status AddGrid(const std::string& path, const PatchGrid& grid, double frame_interval) {
    const int64_t rows = grid.height / merge_size_;
    const int64_t columns = grid.width / merge_size_;
    const int64_t p = next_;
    const auto last_frame =
        static_cast<int64_t>(std::floor(static_cast<double>(grid.frames - 1) * frame_interval));
    RETURN_IF_ERROR(
        CheckRoom(path, grid.frames * rows * columns, p + std::max({last_frame, rows, columns})));
    for (int64_t frame = 0; frame < grid.frames; ++frame) {
      const auto t = static_cast<int64_t>(std::floor(static_cast<double>(frame) * frame_interval));
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t column = 0; column < columns; ++column) Add(p + t, p + row, p + column);
      }
    }
    next_ = to_max_ ? largest_ + 1 : p + std::max(rows, columns);
    return absl::OkStatus();
  }

  v1::AxisPositionIds Take() { return std::move(ids_); }

 private:
  void Add(int64_t t, int64_t h, int64_t w) {
    ids_.mutable_axes(0)->add_ids(t);
    ids_.mutable_axes(1)->add_ids(h);
    ids_.mutable_axes(2)->add_ids(w);
    largest_ = std::max({largest_, t, h, w});
  }

  absl::Status CheckRoom(const std::string& path, int64_t tokens, int64_t last) const {
    if (tokens > kMaxTokens - ids_.axes(0).ids_size()) {
      return FieldError(path, absl::StrCat("makes more than ", kMaxTokens, " tokens in all, got ",
                                           tokens, " more"));
    }
    if (last < kMaxPosition) return absl::OkStatus();
    return FieldError(path,
                      absl::StrCat("must end before position ", kMaxPosition, ", ends at ", last));
  }

  v1::AxisPositionIds ids_;
  int64_t next_;
  int64_t largest_;
  const int64_t merge_size_;
  const bool to_max_;
};

// The sides of a grid in a run, checked as those of a selection are.
absl::StatusOr<PatchGrid> CheckGrid(const std::string& path, const v1::PatchGrid& from,
                                    int64_t merge_size) {
  const PatchGrid grid{from.has_frames() ? from.frames() : 1, from.height(), from.width()};
  RETURN_IF_ERROR(
      CheckInRange(absl::StrCat(path, ".frames"), grid.frames, int64_t{1}, kMaxGridSide));
  for (const auto& [side, length] : {std::pair{"height", grid.height}, {"width", grid.width}}) {
    const std::string field = absl::StrCat(path, ".", side);
    RETURN_IF_ERROR(CheckInRange(field, length, int64_t{1}, kMaxGridSide));
    if (length % merge_size != 0) {
      return FieldError(field, absl::StrCat("must be a multiple of spatial_merge_size (",
                                            merge_size, "), got ", length));
    }
  }
  return grid;
}

absl::Status AddVideo(const std::string& path, const v1::TokenRuns::Video& video,
                      int64_t merge_size, Layer* layer) {
  ASSIGN_OR_RETURN(PatchGrid grid,
                   CheckGrid(absl::StrCat(path, ".grid"), video.grid(), merge_size));
  const double interval = video.has_frame_interval() ? video.frame_interval() : 1.0;
  RETURN_IF_ERROR(
      CheckInRange(absl::StrCat(path, ".frame_interval"), interval, 0.0, kMaxFrameInterval));
  if (!video.separate_frames()) return layer->AddGrid(path, grid, interval);
  const int64_t frames = grid.frames;
  grid.frames = 1;
  for (int64_t frame = 0; frame < frames; ++frame) {
    RETURN_IF_ERROR(layer->AddGrid(path, grid, interval));
  }
  return absl::OkStatus();
}

absl::Status AddRun(const std::string& path, const v1::TokenRuns::Run& run, int64_t merge_size,
                    Layer* layer) {
  switch (run.kind_case()) {
    case v1::TokenRuns::Run::kText:
      return layer->AddText(absl::StrCat(path, ".text"), run.text());
    case v1::TokenRuns::Run::kImage: {
      const std::string image = absl::StrCat(path, ".image");
      ASSIGN_OR_RETURN(const PatchGrid grid, CheckGrid(image, run.image(), merge_size));
      return layer->AddGrid(image, grid, 1.0);
    }
    case v1::TokenRuns::Run::kVideo:
      return AddVideo(absl::StrCat(path, ".video"), run.video(), merge_size, layer);
    case v1::TokenRuns::Run::KIND_NOT_SET:
      break;
  }
  return FieldError(path, "must be text, image or video");
}

}  // namespace

absl::StatusOr<v1::AxisPositionIds> PositionsOfRuns(const v1::TokenRuns& runs) {
  const int64_t merge_size = runs.has_spatial_merge_size() ? runs.spatial_merge_size() : 2;
  RETURN_IF_ERROR(CheckInRange(absl::StrCat(kRuns, ".spatial_merge_size"), merge_size, int64_t{1},
                               kMaxGridSide));
  RETURN_IF_ERROR(CheckEnum(absl::StrCat(kRuns, ".advance"),
                            v1::TokenRuns::Advance_IsValid(runs.advance()), runs.advance()));
  RETURN_IF_ERROR(
      CheckInRange(absl::StrCat(kRuns, ".start"), runs.start(), int64_t{0}, kMaxPosition - 1));
  Layer layer(runs.start(), merge_size, runs.advance() == v1::TokenRuns::ADVANCE_MAX);
  for (int i = 0; i < runs.runs_size(); ++i) {
    RETURN_IF_ERROR(
        AddRun(absl::StrCat(kRuns, ".runs[", i, "]"), runs.runs(i), merge_size, &layer));
  }
  return layer.Take();
}

int64_t RopeDelta(const v1::AxisPositionIds& ids) {
  if (ids.axes().empty() || ids.axes(0).ids().empty()) return 0;
  int64_t largest = ids.axes(0).ids(0);
  for (const auto& axis : ids.axes()) {
    largest = std::max(largest, *std::max_element(axis.ids().begin(), axis.ids().end()));
  }
  return largest + 1 - ids.axes(0).ids_size();
}

}  // namespace posenc
