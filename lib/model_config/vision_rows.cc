// Vision and audio towers, and the transformers of
// diffusion models (by their class, since they have no model_type).
#include <array>

#include "lib/model_config/family_table.h"

namespace posenc {
namespace {

constexpr std::array kFamilies = {
    // A learned row a patch ---------------------------------------------------------
    ModelFamily{.model_types = "clip_vision_model clip",
                .kind = Kind::kLearnedGrid,
                .tower = "vision",
                .hidden_size = 768,
                .table = {.prefix_tokens = 1, .image_size = 224, .patch_size = 32}},
    ModelFamily{.model_types = "siglip_vision_model siglip siglip2_vision_model",
                .kind = Kind::kLearnedGrid,
                .tower = "vision",
                .hidden_size = 768,
                .table = {.image_size = 224, .patch_size = 16}},
    ModelFamily{.model_types = "vit dinov2 dinov2_with_registers vit_mae intern_vit_6b "
                               "internvl_vision",
                .kind = Kind::kLearnedGrid,
                .tower = "vision",
                .hidden_size = 768,
                .table = {.prefix_tokens = 1, .image_size = 224, .patch_size = 16}},
    ModelFamily{.model_types = "deit",
                .kind = Kind::kLearnedGrid,
                .tower = "vision",
                .hidden_size = 768,
                .table = {.prefix_tokens = 2, .image_size = 224, .patch_size = 16}},

    // RoPE over rows and columns ------------------------------------------------------
    ModelFamily{.model_types = "qwen2_5_vl qwen2_5_omni qwen2_5_omni_vision_encoder",
                .kind = Kind::kAxialRope,
                .tower = "vision",
                .axial = {.preset = v1::AXIAL_ROPE_PRESET_QWEN2_5_VL}},
    ModelFamily{.model_types = "qwen2_vl qwen3_vl qwen3_vl_moe qwen3_vl_vision qwen3_vl_moe_vision "
                               "qwen3_omni_moe_vision_encoder qwen3_5 qwen3_5_moe "
                               "qwen3_5_vision qwen3_5_moe_vision glm4v glm4v_vision glm4v_moe "
                               "glm4v_moe_vision glm_ocr glm_ocr_vision paddleocr_vl "
                               "paddleocr_vl_vision",
                .kind = Kind::kAxialRope,
                .tower = "vision"},
    ModelFamily{.model_types = "pixtral",
                .kind = Kind::kAxialRope,
                .tower = "vision",
                .hidden_size = 1024,
                .num_attention_heads = 16,
                .axial = {.preset = v1::AXIAL_ROPE_PRESET_PIXTRAL,
                          .rope_type = "pixtral_2d",
                          .head_parts = 1}},
    ModelFamily{.model_types = "gemma4_vision",
                .kind = Kind::kAxialRope,
                .tower = "vision",
                .axial = {.preset = v1::AXIAL_ROPE_PRESET_GEMMA4_VISION,
                          .axes = "w h",
                          .theta = 100,
                          .rotation = Rotation::kHalfPerAxis}},
    ModelFamily{.model_types = "llama4_vision_model",
                .kind = Kind::kAxialRope,
                .tower = "vision",
                .hidden_size = 768,
                .num_attention_heads = 16,
                .axial = {.preset = v1::AXIAL_ROPE_PRESET_LLAMA4_VISION,
                          .axes = "w h",
                          .rotation = Rotation::kComplex}},
    ModelFamily{.model_types = "kimi_k25",
                .kind = Kind::kAxialRope,
                .tower = "vision",
                .axial = {.preset = v1::AXIAL_ROPE_PRESET_KIMI_VISION,
                          .rope_type = "axial_2d_interleaved_axes",
                          .axes = "w h"}},
    ModelFamily{.model_types = "moonvit",
                .kind = Kind::kAxialRope,
                .tower = "vision",
                .axial = {.preset = v1::AXIAL_ROPE_PRESET_MOONVIT,
                          .rope_type = "axial_2d_interleaved_axes",
                          .axes = "w h",
                          .rotation = Rotation::kComplex}},
    ModelFamily{.model_types = "dinov3_vit dinov3",
                .kind = Kind::kAxialRope,
                .tower = "vision",
                .axial = {.preset = v1::AXIAL_ROPE_PRESET_DINOV3,
                          .rope_type = "dinov3_2d",
                          .head_parts = 1,
                          .theta = 100}},

    // Diffusion transformers, several axes side by side in a head ---------------------
    ModelFamily{.model_types = "FluxTransformer2DModel",
                .kind = Kind::kAxialRope,
                .tower = "transformer",
                .axial = {.preset = v1::AXIAL_ROPE_PRESET_FLUX,
                          .rope_type = "multi_axis",
                          .axes = "t y x",
                          .axes_dim = {16, 56, 56},
                          .rotation = Rotation::kInterleaved}},
    ModelFamily{.model_types = "HunyuanDiT2DModel",
                .kind = Kind::kAxialRope,
                .tower = "transformer",
                .axial = {.preset = v1::AXIAL_ROPE_PRESET_HUNYUAN_DIT,
                          .rope_type = "multi_axis",
                          .axes = "w h",
                          .rotation = Rotation::kInterleaved}},

    // A bias over relative positions --------------------------------------------------
    ModelFamily{.model_types = "beit data2vec-vision",
                .kind = Kind::kBeit,
                .tower = "vision",
                .table = {.prefix_tokens = 1, .image_size = 224, .patch_size = 16}},
    ModelFamily{.model_types = "swin", .kind = Kind::kSwin, .tower = "vision"},
    ModelFamily{.model_types = "clap_audio_model", .kind = Kind::kSwin, .tower = "audio"},

    // Convolutions over the signal ------------------------------------------------------
    ModelFamily{.model_types = "wav2vec2 hubert unispeech unispeech-sat",
                .kind = Kind::kConvolution,
                .tower = "audio"},
    ModelFamily{.model_types = "wavlm", .kind = Kind::kWavlm, .tower = "audio"},
};

}  // namespace

std::span<const ModelFamily> VisionRows() { return kFamilies; }

}  // namespace posenc
