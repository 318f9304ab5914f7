"""What the tool prints for scripts and for people: JSON, and the short view of a model."""
import json
import struct
import unittest
from array import array

import programs
from programs import ALIBI, DONE, FAMILIES, LLAMA, ROPE, describe, run, table_bytes


class Json(unittest.TestCase):

    def test_fields_keep_their_proto_names_and_long_integers_are_strings(self):
        description = describe(*ROPE)
        self.assertIn("inv_freq", description)
        self.assertEqual(description["header"]["total_bytes"], "512000")
        self.assertEqual(description["header"]["spec"]["rope"]["head_dim"], "128")

    def test_floats_read_back_bit_for_bit(self):
        for spec in (ROPE[1], '{"rope": {"head_dim": 96, "rope_theta": 1234567.8, "arithmetic": 2}}'):
            described = describe("--spec", spec)["inv_freq"]
            bits = table_bytes("--spec", spec, "--layout", "inv_freq", "--dtype", "f64")
            self.assertEqual(struct.pack(f"<{len(described)}d", *described), bits)
        slopes = describe(*ALIBI[:2])["slopes"]
        bits = table_bytes(*ALIBI[:2], "--layout", "slopes", "--dtype", "f64")
        self.assertEqual(struct.pack(f"<{len(slopes)}d", *slopes), bits)

    def test_a_description_needs_no_selection(self):
        description = describe(*ROPE[:2])
        self.assertEqual(len(description["inv_freq"]), 64)
        self.assertEqual(description["header"]["tensors"], [])

    def test_a_resolved_config_names_its_encodings(self):
        resolved = json.loads(run("resolve", LLAMA).stdout)
        self.assertEqual(resolved["model_type"], "llama")
        (encoding,) = resolved["encodings"]
        self.assertEqual(encoding["kind"], "rope")
        self.assertEqual(encoding["max_position_embeddings"], "131072")
        self.assertEqual(encoding["spec"]["rope"]["llama3"]["factor"], 8)


    def test_an_attention_factor_is_shown_where_there_is_one(self):
        for family, arguments in FAMILIES.items():
            text = run("table", *arguments, "-o", "-").stderr.decode()
            self.assertEqual("attention_factor" in text, family == "rope", family)
        for model, shown in (("gpt2", False), ("Meta-Llama-3.1-8B", True)):
            result = run("resolve", str(programs.CONFIGS / f"{model}.json"))
            (encoding,) = json.loads(result.stdout)["encodings"]
            self.assertEqual("attention_factor" in encoding, shown, model)

    def test_a_short_resolve_has_two_lines_an_encoding(self):
        result = run("resolve", "--short", str(programs.CONFIGS / "gemma-4-31B-it-NVFP4.json"))
        self.assertEqual(result.returncode, DONE)
        lines = result.stdout.decode().splitlines()
        self.assertEqual(lines[:5], [
            "gemma4",
            "text full_attention: rope proportional, 10 layers (5 11 17 ... 59), 262144 positions, "
            "bf16",
            "  head_dim 512, rotary_dim 512, rope_theta 1000000, pairing half, arithmetic float32, "
            "proportional (factor 1, rotating_pairs 64)",
            "text sliding_attention: rope default, 50 layers (0-4 6-10 12-16 ... 54-58), 262144 "
            "positions, bf16",
            "  head_dim 256, rotary_dim 256, rope_theta 10000, pairing half, arithmetic float32",
        ])
        self.assertEqual(len(lines), 7)
        text = run("resolve", "--short", str(programs.CONFIGS / "Phi-3.5-mini-instruct.json"))
        self.assertIn("longrope (short_factor (48 values), long_factor (48 values), ",
                      text.stdout.decode())
        self.assertIn("note: /rope_scaling/factor: ", text.stdout.decode())

    def test_every_model_has_a_short_view(self):
        for config in sorted(programs.CONFIGS.glob("*.json")):
            whole = run("resolve", str(config))
            if whole.returncode != DONE:
                continue
            result = run("resolve", "--short", str(config))
            self.assertEqual(result.returncode, DONE, config)
            resolved = json.loads(whole.stdout)
            most = 1 + 2 * len(resolved["encodings"]) + len(resolved["findings"])
            self.assertLessEqual(len(result.stdout.splitlines()), most, config)
            self.assertNotIn(b"...,", result.stdout, "a field of a type that is not printed")

    def test_a_bias_that_is_not_the_models_own_says_so(self):
        grid = ("--query-length", "4", "--key-length", "8")
        for model, form in (("bloom-560m", "ALIBI_FORM_KEY_POSITION"),
                            ("frag-flax-mpt7b", "ALIBI_FORM_LAST_ROW")):
            config = str(programs.CONFIGS / f"{model}.json")
            result = run("table", "--config", config, *grid, "-o", "-")
            self.assertIn(f"form {form}", result.stderr.decode())
            slopes = run("table", "--config", config, "--layout", "slopes", "-o", "-")
            self.assertNotIn("form", slopes.stderr.decode())
            # That form has slope times a key's place; each row of the other differs by a constant
            # where the query may look.
            spec = describe("--config", config, *grid)["header"]["spec"]
            spec["alibi"]["form"] = form
            own = array("f", table_bytes("--spec", json.dumps(spec), *grid))
            causal = array("f", result.stdout)
            first = 0 if form.endswith("KEY_POSITION") else -7
            heads = array("f", slopes.stdout)
            for head, slope in enumerate(heads):
                row = own[head * len(own) // len(heads):][:8]
                for key in range(8):
                    self.assertAlmostEqual(row[key], slope * (first + key), delta=1e-6)
                for query in range(4):
                    same = {round(row[key] - causal[(head * 4 + query) * 8 + key], 5)
                            for key in range(query + 1)}
                    self.assertEqual(len(same), 1, (model, head, query))


if __name__ == "__main__":
    unittest.main()
