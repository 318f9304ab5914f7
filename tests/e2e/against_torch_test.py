"""How close a RoPE table is to the one that torch makes on a CPU: what README.md says of it.

The torch side is the operation order of transformers' float32 code: inverse frequencies, angles
by an outer product, cos and sin, each in float32. Skipped where there is no torch; run with -v
it prints the numbers of the table in README.md.
"""
import json
import unittest

from programs import table_bytes

try:
    import torch
except ImportError:
    torch = None

LLAMA3 = {"factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
          "original_max_position_embeddings": 8192}
HEAD_DIM = 128


def inverse_frequencies(spec):
    exponents = torch.arange(0, HEAD_DIM, 2).float() / HEAD_DIM
    inv_freq = 1.0 / (spec["rope_theta"] ** exponents)
    if "llama3" not in spec:
        return inv_freq
    wavelengths = 2 * torch.pi / inv_freq
    trained = LLAMA3["original_max_position_embeddings"]
    low, high = LLAMA3["low_freq_factor"], LLAMA3["high_freq_factor"]
    slow = inv_freq / LLAMA3["factor"]
    smooth = (trained / wavelengths - low) / (high - low)
    between = (1 - smooth) * slow + smooth * inv_freq
    between = torch.where(wavelengths > trained / low, slow, between)
    return torch.where(wavelengths < trained / high, inv_freq, between)


def posenc(spec, dtype, layout, rows):
    selection = ("--positions", f"0:{rows}") if rows else ()
    data = table_bytes("--spec", json.dumps({"rope": spec}), *selection, "--layout", layout,
                       "--dtype", dtype)
    return torch.frombuffer(bytearray(data),
                            dtype=torch.bfloat16 if dtype == "bf16" else torch.float32)


def ulps(a, b):
    """Between floats of the same tensor shape; -0.0 and 0.0 are the same."""
    ordinals = [torch.where(bits < 0, -(bits & 0x7fffffff), bits)
                for bits in (x.contiguous().view(torch.int32).long() for x in (a, b))]
    return (ordinals[0] - ordinals[1]).abs()


@unittest.skipIf(torch is None, "needs torch")
class AgainstTorchTest(unittest.TestCase):

    def compare(self, rows, **rope):
        """(pairs whose inv_freq differs, F32 ulps, F32 differences, BF16 differences, columns)"""
        spec = {"head_dim": HEAD_DIM, **rope}
        inv_freq = inverse_frequencies(spec)
        other = posenc(spec, "f32", "inv_freq", 0) != inv_freq
        angles = torch.outer(torch.arange(rows).float(), inv_freq)
        own = torch.cat((angles.cos(), angles.sin()), dim=1)
        table = posenc(spec, "f32", "cos_sin", rows).reshape(own.shape)
        bf16 = posenc(spec, "bf16", "cos_sin", rows).reshape(own.shape) != own.bfloat16()
        apart, distance, equal = ulps(table, own), (table - own).abs(), ~other.repeat(2)
        print(f"\n{rope} {rows} rows: inv_freq {int(other.sum())} of {len(other)} differ; "
              f"F32 {(apart > 0).double().mean():.2%} by up to {distance.max():.2g}; "
              f"BF16 {int(bf16.sum())} of {bf16.numel()}; where inv_freq is equal "
              f"F32 {(apart[:, equal] > 0).double().mean():.2%} by up to {apart[:, equal].max()} "
              f"ulp, BF16 {int(bf16[:, equal].sum())}")
        return int(other.sum()), apart[:, equal], bf16[:, equal], distance

    def test_float32_is_within_one_ulp_where_the_frequencies_are_equal(self):
        for rows, rope in ((131072, {"rope_theta": 1e4}),
                           (131072, {"rope_theta": 5e5, "llama3": LLAMA3}),
                           (32768, {"rope_theta": 1e6})):
            with self.subTest(rope):
                other, apart, bf16, _ = self.compare(rows, **rope)
                self.assertLessEqual(other, 4)
                self.assertLessEqual(int(apart.max()), 1)
                self.assertLess((apart > 0).double().mean(), 0.1)
                self.assertLess(bf16.double().mean(), 1e-5)

    def test_exact_is_another_table(self):
        *_, distance = self.compare(131072, rope_theta=1e4, arithmetic="ARITHMETIC_EXACT")
        self.assertGreater(float(distance.max()), 1e-3, "float32's angles are this far off")


if __name__ == "__main__":
    unittest.main()
