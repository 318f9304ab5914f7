#include "tests/conformance/cases.h"

#include <cstdlib>
#include <iostream>

#include "google/protobuf/text_format.h"

namespace posenc::testing {
namespace {

struct Text {
  const char* name;
  const char* request;
};

constexpr Text kCases[] = {
    {"rope.llama3.bf16",
     R"(spec { rope { head_dim: 128 rope_theta: 500000
          llama3 { factor: 8 low_freq_factor: 1 high_freq_factor: 4
                   original_max_position_embeddings: 8192 } } }
        selection { position_range { end: 20000 } } format { dtype: DTYPE_BF16 })"},
    {"rope.default.f32.far",
     R"(spec { rope { head_dim: 64 } }
        selection { position_range { begin: 2147479000 end: 2147483648 } })"},
    {"rope.yarn.half.f16",
     R"(spec { rope { head_dim: 128 rope_theta: 1000000
          yarn { factor: 4 original_max_position_embeddings: 32768 } } }
        selection { position_range { begin: 7 end: 9007 } }
        format { layout: LAYOUT_COS_AND_SIN_HALF dtype: DTYPE_F16 })"},
    {"rope.linear.full.interleaved",
     R"(spec { rope { head_dim: 96 rotary_dim: 24 pairing: PAIRING_INTERLEAVED
          linear { factor: 2.5 } } }
        selection { position_range { end: 3000 } } format { layout: LAYOUT_COS_AND_SIN_FULL })"},
    {"rope.exact.pairs.f64",
     R"(spec { rope { head_dim: 128 arithmetic: ARITHMETIC_EXACT } }
        selection { position_range { begin: 131000 end: 132000 } }
        format { layout: LAYOUT_PAIRS dtype: DTYPE_F64 })"},
    {"rope.ids",
     R"(spec { rope { head_dim: 128 arithmetic: ARITHMETIC_EXACT } }
        selection { position_ids { ids: 5 ids: 0 ids: 131071 ids: 5 ids: 2147483647 } })"},
    {"rope.inv_freq", R"(spec { rope { head_dim: 128 } } format { layout: LAYOUT_INV_FREQ }
                         selection { position_range { end: 1 } })"},
    {"rope.longrope.short_then_long.bf16",
     R"(spec { rope { head_dim: 8 longrope { short_factor: [1, 1.5, 2, 3] long_factor: [1, 2, 5, 9]
          original_max_position_embeddings: 1000 factor: 4 short_mscale: 1.25 long_mscale: 1.5
          short_then_long: true } } }
        selection { position_range { begin: 900 end: 5000 } } format { dtype: DTYPE_BF16 })"},
    {"rope.longrope.divided.f16",
     R"(spec { rope { head_dim: 8 scale_after_rounding: true
          longrope { short_factor: [1, 1, 1, 1] long_factor: [1, 2, 5, 9] factor: 4
          original_max_position_embeddings: 1000 sequence_length: 4000 divide_positions: true } } }
        selection { position_range { end: 4000 } } format { dtype: DTYPE_F16 })"},
    {"rope.ntk.mixed.pairs_full",
     R"(spec { rope { head_dim: 64 ntk { factor: 8 mixed_b: 0.625 } } }
        selection { position_range { end: 2000 } } format { layout: LAYOUT_PAIRS_FULL })"},
    {"rope.interleaved.repeated.bf16",
     R"(spec { rope { head_dim: 80 pairing: PAIRING_INTERLEAVED } } selection { position_range {
        end: 3000 } } format { layout: LAYOUT_COS_AND_SIN_REPEATED dtype: DTYPE_BF16 })"},
    {"rope.empty", R"(spec { rope { head_dim: 128 } }
                      selection { position_range { begin: 9 end: 9 } })"},
    {"sinusoidal.paper.f32",
     R"(spec { sinusoidal { d_model: 512 } } selection { position_range { begin: -100 end: 2000 } })"},
    {"sinusoidal.fairseq.odd",
     R"(spec { sinusoidal { d_model: 127 layout: SINUSOIDAL_LAYOUT_HALF_SIN_COS
          frequency_rule: FREQUENCY_RULE_T2T padding_row: 1 } }
        selection { position_range { end: 1026 } })"},
    {"sinusoidal.marian.bf16",
     R"(spec { sinusoidal { d_model: 512 layout: SINUSOIDAL_LAYOUT_HALF_SIN_COS } }
        selection { position_range { end: 512 } } format { dtype: DTYPE_BF16 })"},
    {"alibi.bias",
     R"(spec { alibi { num_heads: 12 } }
        selection { attention_grid { query_length: 200 key_length: 333 query_offset: 133 } })"},
    {"alibi.symmetric.bf16",
     R"(spec { alibi { num_heads: 5 form: ALIBI_FORM_SYMMETRIC slope_rounding: SLOPE_ROUNDING_MPT } }
        selection { attention_grid { query_length: 129 key_length: 257 } }
        format { dtype: DTYPE_BF16 })"},
    {"alibi.vector",
     R"(spec { alibi { num_heads: 71 slope_rounding: SLOPE_ROUNDING_BLOOM } }
        selection { attention_grid { query_length: 4096 key_length: 4096 } }
        format { layout: LAYOUT_BIAS_VECTOR })"},
    {"alibi.slopes", R"(spec { alibi { num_heads: 112 } } format { layout: LAYOUT_SLOPES }
                        selection { attention_grid { query_length: 1 key_length: 1 } })"},
    {"t5.buckets",
     R"(spec { t5 { } } selection { attention_grid { query_length: 700 key_length: 701 } })"},
    {"t5.causal.vector",
     R"(spec { t5 { bidirectional: false } }
        selection { attention_grid { query_length: 1 key_length: 5000 query_offset: 4999 } }
        format { layout: LAYOUT_BUCKET_VECTOR })"},
    {"sinusoidal_grid.mae",
     R"(spec { sinusoidal_grid { d_model: 768 prefix_zero_rows: 1 } }
        selection { patch_grid { height: 24 width: 31 } })"},
    {"sinusoidal_grid.moco.bf16",
     R"(spec { sinusoidal_grid { preset: SINUSOIDAL_GRID_PRESET_MOCO_V3 d_model: 256 } }
        selection { patch_grid { height: 14 width: 9 } } format { dtype: DTYPE_BF16 })"},
    {"sinusoidal_grid.cogvideox.f64",
     R"(spec { sinusoidal_grid { preset: SINUSOIDAL_GRID_PRESET_COGVIDEOX d_model: 48
          interpolation_scale: 1.875 } }
        selection { patch_grid { frames: 2 height: 3 width: 5 } } format { dtype: DTYPE_F64 })"},
    {"detr_sine.mask",
     R"(spec { detr_sine { num_position_features: 128 } }
        selection { token_mask { height: 2 width: 3 valid: "\001\001\000\001\000\000" } })"},
    {"detr_sine.deformable.table",
     R"(spec { detr_sine { preset: DETR_PRESET_DEFORMABLE_DETR num_position_features: 128 } }
        selection { patch_grid { height: 25 width: 34 } } format { layout: LAYOUT_TABLE })"},
    {"detr_learned",
     R"(spec { detr_learned { num_position_features: 1 row_embeddings: [1, 2]
          column_embeddings: [3, 4, 5] } }
        selection { patch_grid { height: 2 width: 3 } })"},
    {"anchor_sine",
     R"(spec { anchor_sine { } }
        selection { points { dimensions: 4 coordinates: [0.5, 0.25, 0.1, 0.9] } })"},
    {"random_fourier",
     R"(spec { random_fourier { gaussian_matrix: [0.5, -0.25, 1, 0.75] } }
        selection { patch_grid { height: 64 width: 64 } })"},
    {"perceiver_fourier",
     R"(spec { perceiver_fourier { num_bands: 64 max_resolution: [224, 224] } }
        selection { patch_grid { height: 20 width: 224 } })"},
    {"table_resample.geometric",
     R"(spec { table_resample { source_spacing: RESAMPLE_SPACING_GEOMETRIC grid_height: 5
          grid_width: 7 suffix_rows: 1 table { shape: [36, 1] values: [
            0.5, -1, 2, 0.25, 7, -3, 1.5, 4, -0.75, 0.1, 0.2, 0.3, -5, 6, 0.7, 8, -9, 1, 2.5, 3.5,
            -4.5, 0.9, -0.8, 0.6, 1.1, 1.2, -1.3, 2.1, -2.2, 2.3, 3.1, 3.2, -3.3, 7, 8, 9] } } }
        selection { patch_grid { height: 9 width: 11 } })"},
    {"mrope.prompt",
     R"(spec { mrope { rope { head_dim: 128 rope_theta: 1e6 } mrope_section: [16, 24, 24] } }
        selection { token_runs { runs { text: 15 } runs { image { height: 28 width: 42 } }
                                 runs { text: 2000 } } })"},
    {"mrope.position_ids",
     R"(spec { mrope { rope { rotary_dim: 64 } mrope_section: [11, 11, 10] } }
        selection { token_runs { runs { video { grid { frames: 3 height: 4 width: 6 }
                                                frame_interval: 1.5 } } runs { text: 3 } } }
        format { layout: LAYOUT_POSITION_IDS })"},
    {"axial_rope.qwen2_5_vl.full",
     R"(spec { axial_rope { preset: AXIAL_ROPE_PRESET_QWEN2_5_VL head_dim: 80 } }
        selection { patch_grid { frames: 2 height: 36 width: 50 } }
        format { layout: LAYOUT_COS_AND_SIN_FULL })"},
    {"axial_rope.dinov3.f16",
     R"(spec { axial_rope { preset: AXIAL_ROPE_PRESET_DINOV3 head_dim: 64 } }
        selection { patch_grid { height: 14 width: 15 } } format { dtype: DTYPE_F16 })"},
    {"axial_rope.wan.pairs",
     R"(spec { axial_rope { preset: AXIAL_ROPE_PRESET_WAN head_dim: 128 } }
        selection { patch_grid { frames: 5 height: 30 width: 52 } }
        format { layout: LAYOUT_PAIRS })"},
};

}  // namespace

const std::vector<Case>& Cases() {
  static const std::vector<Case>* const kParsed = [] {
    auto* cases = new std::vector<Case>;
    for (const Text& text : kCases) {
      Case parsed{text.name, {}};
      if (!google::protobuf::TextFormat::ParseFromString(text.request, &parsed.request)) {
        std::cerr << "case " << text.name << " does not parse\n";
        std::abort();
      }
      cases->push_back(std::move(parsed));
    }
    return cases;
  }();
  return *kParsed;
}

}  // namespace posenc::testing
