// Encoders, encoder-decoders, and decoders whose positions are not rotations.
#include <array>

#include "lib/model_config/family_table.h"

namespace posenc {
namespace {

constexpr std::array kFamilies = {
    // RoPE encoders --------------------------------------------------------------------------
    ModelFamily{.model_types = "modernbert modernbert-decoder",
                .tower = "encoder",
                .rope = {.layers = LayerRule::kModernBert}},
    ModelFamily{.model_types = "eurobert", .tower = "encoder", .since_v5 = true},
    ModelFamily{.model_types = "nomic_bert",
                .tower = "encoder",
                .rope = {.theta = 1000,
                         .theta_keys = "rope_theta rotary_emb_base",
                         .partial_keys = "partial_rotary_factor rotary_emb_fraction"}},
    ModelFamily{.model_types = "jina_embeddings_v3",
                .tower = "encoder",
                .rope = {.theta = 20000, .theta_keys = "rope_theta rotary_emb_base"}},
    ModelFamily{.model_types = "roformer",
                .tower = "encoder",
                .rope = {.theta_keys = "",
                         .rotation = Rotation::kInterleaved,
                         .map_key = "-",
                         .variant = "float64_table",
                         .arithmetic = v1::ARITHMETIC_EXACT}},
    ModelFamily{.model_types = "esm", .kind = Kind::kEsm, .tower = "encoder"},

    // Added to the scores ----------------------------------------------------------------------
    ModelFamily{.model_types = "bloom", .kind = Kind::kBloom},
    ModelFamily{.model_types = "mpt", .kind = Kind::kMpt},
    ModelFamily{.model_types = "t5 mt5 longt5 switch_transformers pop2piano", .kind = Kind::kT5},
    ModelFamily{.model_types = "pix2struct pix2struct_text_model",
                .kind = Kind::kT5,
                .num_attention_heads = 12,
                .table = {.decoder_only = true}},
    ModelFamily{.model_types = "umt5", .kind = Kind::kT5, .table = {.per_layer = true}},
    ModelFamily{.model_types = "mpnet",
                .kind = Kind::kMpnet,
                .tower = "encoder",
                .table = {.after_padding = true}},
    ModelFamily{.model_types = "deberta deberta-v2", .kind = Kind::kDeberta, .tower = "encoder"},
    ModelFamily{.model_types = "xlnet", .kind = Kind::kXlnet},

    // Added to the embeddings -------------------------------------------------------------------
    ModelFamily{.model_types = "gpt2 gpt_bigcode gpt_neo openai-gpt ctrl clip_text_model "
                               "siglip_text_model clip siglip",
                .kind = Kind::kLearned},
    // Sequential recommenders: no model_type, and keys of their own.
    ModelFamily{.model_types = "bert4rec sasrec", .kind = Kind::kLearned},
    ModelFamily{.model_types = "opt biogpt",
                .kind = Kind::kLearned,
                .table = {.extra_rows = 2, .offset = 2}},
    ModelFamily{.model_types = "bart mbart plbart",
                .kind = Kind::kLearned,
                .tower = "encoder decoder",
                .table = {.extra_rows = 2, .offset = 2}},
    ModelFamily{.model_types = "blenderbot blenderbot-small",
                .kind = Kind::kLearned,
                .tower = "encoder decoder"},
    ModelFamily{.model_types = "bert electra albert distilbert mobilebert layoutlm",
                .kind = Kind::kBert,
                .tower = "encoder"},
    ModelFamily{.model_types = "roberta xlm-roberta camembert longformer xlm-roberta-xl "
                               "data2vec-text xmod roberta-prelayernorm",
                .kind = Kind::kBert,
                .tower = "encoder",
                .hidden_size = 768,
                .table = {.after_padding = true}},
    ModelFamily{.model_types = "layoutlmv2", .kind = Kind::kLayoutLm, .tower = "encoder"},
    ModelFamily{.model_types = "layoutlmv3",
                .kind = Kind::kLayoutLm,
                .tower = "encoder",
                .table = {.after_padding = true, .bias_over_sqrt_head_dim = true}},
    ModelFamily{.model_types = "clap_text_model clap",
                .kind = Kind::kLearned,
                .max_position_embeddings = 514,
                .table = {.after_padding = true}},
    ModelFamily{.model_types = "marian pegasus",
                .kind = Kind::kSinusoidal,
                .tower = "encoder decoder",
                .max_position_embeddings = 1024},
    ModelFamily{.model_types = "musicgen_decoder",
                .kind = Kind::kSinusoidal,
                .max_position_embeddings = 2048,
                .table = {.cosine_first = true}},
    ModelFamily{.model_types = "m2m_100 nllb-moe speech_to_text fsmt seamless_m4t",
                .kind = Kind::kSinusoidal,
                .tower = "encoder decoder",
                .max_position_embeddings = 1024,
                .table = {.fairseq = true}},
    ModelFamily{.model_types = "kosmos-2 kosmos_2_text_model",
                .kind = Kind::kSinusoidal,
                .hidden_size = 2048,
                .max_position_embeddings = 2048,
                .table = {.fairseq = true}},
    // Learned, or this, by a key.
    ModelFamily{.model_types = "trocr",
                .kind = Kind::kTrocr,
                .tower = "decoder",
                .hidden_size = 1024,
                .max_position_embeddings = 512,
                .table = {.extra_rows = 2, .offset = 2, .fairseq = true}},
    ModelFamily{.model_types = "xglm",
                .kind = Kind::kSinusoidal,
                .max_position_embeddings = 2048,
                .table = {.fairseq = true}},
    ModelFamily{.model_types = "whisper", .kind = Kind::kWhisper},
    ModelFamily{.model_types = "grounding-dino", .kind = Kind::kGroundingDino},

    // No position at all ------------------------------------------------------------------------
    ModelFamily{.model_types = "nemotron_h jamba mamba mamba2 falcon_mamba", .kind = Kind::kNone},
};

}  // namespace

std::span<const ModelFamily> EncoderRows() { return kFamilies; }

}  // namespace posenc
