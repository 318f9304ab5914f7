// The model families: what a config of each leaves unsaid. Data, a row a family.
//
// Everything that can be a rule is one (rope_rules.h and its kin); a row says
// only which names, defaults and rules a family has. Source:
// reference/hf-rope.md sections 4 and 5 (transformers 5.16, where it changed
// since 4.57 both), reference/other-encodings.md for what is not RoPE.
#ifndef POSENC_LIB_MODEL_CONFIG_FAMILY_TABLE_H_
#define POSENC_LIB_MODEL_CONFIG_FAMILY_TABLE_H_

#include <array>
#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {

// The rule that reads a tower of the family.
enum class Kind : uint8_t {
  kRope,
  kAxialRope,  // 2-D and 3-D, of vision towers and diffusion transformers
  kSamVision,  // one of the next two, and DETR's sines in the neck
  kSam2Hiera,  // two learned grids: one is stretched, one is a window's
  kSam3Vit,    // RoPE in windows and across them, and a learned grid
  kBloom,
  kMpt,
  kFalcon,    // ALiBi or RoPE, by a key
  kBaichuan,  // ALiBi (13B) or RoPE (7B), by size
  kBert,      // learned, or what position_embedding_type says
  kEsm,       // RoPE or learned, by position_embedding_type
  kLearned,
  kLearnedGrid,  // a row a patch
  kT5,
  kLongT5,  // the same, and a side of whole blocks
  kMpnet,   // learned and T5 buckets
  kSinusoidal,
  kWhisper,         // sinusoidal encoder, learned decoder
  kWhisperEncoder,  // the former alone, of models that hear
  kDeberta,
  kXlnet,
  kBeit,
  kSwin,
  kGroundingDino,
  kConvolution,     // wav2vec 2 and kin
  kWavlm,           // convolution and T5 buckets
  kConformer,       // sinusoids of distances, RoPE, clipped keys, by a key
  kTrocr,           // learned or sinusoidal, by a key
  kLayoutLm,        // learned, and T5 buckets of positions and of coordinates
  kUdop,            // the same by a list, of real coordinates
  kSeamless,        // fairseq's sinusoids, and a conformer for speech
  kSpeechT5,        // clipped distances, and sinusoids before encoder and decoder
  kChunkDistances,  // a sinusoid of the distances inside a chunk
  kCogVideoX,       // RoPE over a grid or its sinusoid, by a key
  kNone,
};

// How a head is turned (ResolvedEncoding.rotation).
enum class Rotation : uint8_t { kHalf, kInterleaved, kInterleavedToHalf, kComplex, kHalfPerAxis };

// Which layers share an encoding (layer_rules.h).
enum class LayerRule : uint8_t {
  kAll,
  kGemma3,          // full with the scaling, sliding with its own base and none
  kModernBert,      // the same, every third layer full, names of its own
  kOlmo3,           // the scaling in full layers only
  kGemma4,          // full layers have another head_dim too
  kFullOnly,        // the others are linear attention, a state space or a convolution
  kNoRopeLayers,    // a list of 0 and 1: 1 rotates
  kSlidingOnly,     // full layers do not rotate
  kExaone4,         // kSlidingOnly when there is a sliding window
  kDeepseekV4,      // main and compress
  kLayerThetas,     // a base a layer, 0 does not rotate
  kMimoV2,          // sliding layers have a base of their own
  kMimoV2Own,       // the same where the file says it, else that of full layers
  kCrossAttention,  // cross_attention_layers do not rotate
  kByLayerType,     // an encoding for each of layer_types, from lists with an entry a layer
  kGraniteHybrid,   // attention layers, if position_embedding_type is rope
  kByKeys,          // of a family that is not known: whichever of these lists its file has
};

// RopeTraits::rope_types of Phi-3 and kin.
inline constexpr absl::string_view kDefaultOrLongRope = "default longrope";

enum class QueryScaleRule : uint8_t { kNone, kLlama4, kMinistral, kQwen };

struct RopeTraits {
  double theta = 10000;  // where the file has none
  double theta_v4 = 0;   // the default of transformers 4, where it was another
  absl::string_view theta_keys = "rope_theta rotary_base";  // names for it, best first
  absl::string_view theta_ratio_key = "";                   // multiplies the default
  absl::string_view position_scale_key = "";                // divides positions
  double partial = 1;  // partial_rotary_factor where the file has none
  absl::string_view partial_keys = "partial_rotary_factor";  // beside the map; empty: not read
  bool partial_in_v5 = false;  // 5.16 honours it with rope_type default
  // 5.16 sets `partial` as if it stood beside the map, where it wins for scaled types.
  bool partial_beside_map = false;
  absl::string_view rotary_dim_key = "";    // the width itself, where the family has it
  int64_t rotary_dim = 0;                   // where the file has none; 0: by partial
  bool rotary_dim_unread_in_v5_16 = false;  // its class does not read the key (MiniMax M2)
  // The width is half of this key's size / heads, at least rotary_dim (CLVP).
  absl::string_view halved_width_key = "";
  int64_t halved_width = 0;  // where the file has none
  absl::string_view head_dim_keys = "head_dim";
  int64_t head_dim = 0;      // where the file has none; 0: hidden_size / heads
  int64_t hidden_sizes = 1;  // so many hidden_size go into the heads (Zamba 2: 2)
  Rotation rotation = Rotation::kHalf;
  bool channels_last = false;  // MLA: the rotated channels are the last
  LayerRule layers = LayerRule::kAll;
  int64_t full_every = 0;   // every so many layers one is full, where the rule's count is another
  bool full_first = false;  // the first of each such run, not the last
  absl::string_view full_name = "full_attention";  // what kByLayerType's class calls that layer
  absl::string_view layer_numbers_key = "";        // a list with a 1 for each full layer
  absl::string_view layer_cycle_key = "";          // the types of a run, which is repeated
  // A list of the full layers' numbers, and the number of the first layer.
  absl::string_view full_layers_key = "";
  int64_t first_layer = 0;
  // A list of the layer types that a flat map holds for; full_attention where the file has none.
  absl::string_view scaled_types_key = "";
  // Another name of rope_scaling; "-" where the family reads no map at all.
  absl::string_view map_key = "";
  absl::string_view enabled_key = "";  // a switch: RoPE only where it is true
  bool enabled_by_default = false;     // of that switch
  bool enabled_by_theta = false;       // RoPE only where the file has a base (OLMo Hybrid)
  // A switch whose base some files hold multiplied and others not.
  absl::string_view refused_switch_key = "";
  absl::string_view default_map = "";  // JSON: rope_parameters where the file has none
  // The rope_types that the family's class takes, separated by spaces; "" for all.
  absl::string_view rope_types = "";
  bool mscales_required = false;  // short_mscale and long_mscale of longrope
  // With transformers 4 its code finds the training length of a longrope inside the map too.
  bool length_in_map_in_v4 = false;
  absl::string_view mrope_scheme = "";
  std::array<int64_t, 3> mrope_section = {0, 0, 0};
  bool mla_softmax_scale = false;     // mscale_all_dim scales the softmax too
  bool mla_softmax_since_v5 = false;  // transformers 4 leaves it out
  QueryScaleRule query_scale = QueryScaleRule::kNone;
  v1::DynamicGrowth growth = v1::DYNAMIC_GROWTH_LINEAR;  // of rope_type dynamic
  // A base that grows by powers of two from this key's length on, and cos and sin that are
  // multiplied beyond trained_length_key's (TeleChat). base_lengths: where the file has none, by
  // hidden_size, as pairs.
  absl::string_view base_length_key = "";
  absl::string_view trained_length_key = "";
  int64_t trained_length = 0;  // where the file has none
  std::array<std::array<int64_t, 2>, 2> base_lengths = {};
  // Their own code divides positions, not frequencies, with a linear scaling (InternLM).
  bool divide_positions = false;
  int64_t original_length = 0;     // original_max_position_embeddings where it is not given
  absl::string_view variant = "";  // ResolvedEncoding.variant
  v1::Arithmetic arithmetic = v1::ARITHMETIC_UNSPECIFIED;  // where the request says none
};

// Of a learned table, a sinusoid, or a grid of patches.
struct TableTraits {
  absl::string_view rows_keys = "max_position_embeddings n_positions n_ctx";
  int64_t rows = 0;            // where the file has none
  int64_t extra_rows = 0;      // beside what rows_keys gives
  int64_t offset = 0;          // row of the first token
  bool after_padding = false;  // the offset is padding_idx + 1 instead
  int64_t padding_idx = 1;     // where the file has none
  int64_t prefix_tokens = 0;   // rows before the patches
  bool cosine_first = false;   // MusicGen
  bool per_layer = false;      // UMT5: a table in every layer
  int64_t image_size = 0;      // where the file has none
  int64_t patch_size = 0;
  bool fairseq = false;                  // the T2T frequencies, a row of zeros for padding
  bool decoder_only = false;             // of T5: no encoder
  bool bias_over_sqrt_head_dim = false;  // LayoutLMv3's buckets
  absl::string_view default_type = "";   // position_embeddings_type where the file has none
  bool fixed_distances = false;          // a chunk's distances are not the file's to choose
  // Of an encoder whose rows are max_source_positions, of a decoder whose are
  // max_target_positions: where the file has none of the former. 0: both have the same.
  int64_t source_rows = 0;
  absl::string_view variant = "";  // ResolvedEncoding.variant
};

// Of a RoPE over a grid: the table is the preset's, the rest is how it is reported.
struct AxialTraits {
  v1::AxialRopePreset preset = v1::AXIAL_ROPE_PRESET_QWEN_VL;
  absl::string_view rope_type = "axial_2d";
  absl::string_view axes = "h w";
  // The d of theta^(-2i/d) as a part of the head: 2 for half of it, 1 for all; 0
  // where axes have parts of their own.
  int64_t head_parts = 2;
  std::array<int64_t, 3> axes_dim = {0, 0, 0};  // those, of the class's head
  double theta = 10000;
  Rotation rotation = Rotation::kHalf;
  int64_t head_dim = 0;          // where the file has none
  bool own_axes = false;         // in another order than the preset's
  double coordinate_offset = 0;  // beside the preset's
  // Side of the merged squares of Qwen-VL's token order where the file has none.
  int64_t merge_size = 2;
  bool row_major = false;             // in no such order, whatever spatial_merge_size says
  absl::string_view window_key = "";  // side of a window in such squares
  int64_t window_size = 0;            // where the file has none
  // The head is width / heads / divisor of keys of its own (SAM 2's memory attention).
  absl::string_view width_key = "";
  absl::string_view heads_key = "";
  absl::string_view divisor_key = "";
  absl::string_view variant = "";  // ResolvedEncoding.variant
};

struct ModelFamily {
  absl::string_view model_types;  // separated by spaces
  Kind kind = Kind::kRope;
  absl::string_view tower = "text";
  bool since_v5 = false;  // transformers 4 does not know it: its files have the new form only
  // Class defaults, which a nested config relies on: saving drops equal values.
  int64_t hidden_size = 0;
  int64_t num_attention_heads = 0;
  int64_t num_hidden_layers = 0;
  int64_t max_position_embeddings = 0;
  // What a key of the file switches on, as name=key separated by spaces: the name is a kind or
  // a layer type (FactPlace `with:`).
  absl::string_view switches = "";
  RopeTraits rope = {};
  TableTraits table = {};
  AxialTraits axial = {};
};

// The rows. Those of text are named for composites too, whose text tower they are.
std::span<const ModelFamily> DecoderRows();
std::span<const ModelFamily> LayeredRows();
std::span<const ModelFamily> EncoderRows();
// Vision and audio towers, which share some names with the models around them.
std::span<const ModelFamily> VisionRows();

// Null when no row has this model_type.
const ModelFamily* FindFamily(absl::string_view model_type);
const ModelFamily* FindVisionFamily(absl::string_view model_type);

// By the name of a class (DeepseekV4ForCausalLM), for files whose model_type is
// missing or not known. Null when no row's name is the beginning of it.
const ModelFamily* FindFamilyOfArchitecture(absl::string_view architecture);

// For a model_type that no row has, in a file with standard RoPE keys: with ordinary heads, and
// with multi-head latent attention.
const ModelFamily& GenericRopeFamily();
const ModelFamily& GenericLatentFamily();

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_FAMILY_TABLE_H_
