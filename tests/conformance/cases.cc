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
