"""Section 6 of the design, line by line: what scripts depend on.

Flags, names, exit codes, with and without a server. Files: cli_files_test.py. JSON:
cli_json_test.py.
"""
import json
import os
import pathlib
import socket
import unittest

import programs
from programs import (ALIBI, DONE, FAMILIES, FILE, LLAMA, REFUSED, ROPE, SINUSOIDAL, T5,
                      UNREACHABLE, USAGE, describe, run, server, summary, table_bytes)


class ExitCodes(unittest.TestCase):

    def expect(self, code, words, *arguments, **options):
        result = run(*arguments, **options)
        error = result.stderr.decode()
        self.assertEqual(result.returncode, code, (arguments, error))
        self.assertIn(words, error, arguments)

    def test_done(self):
        for arguments in (("describe", *ROPE), ("resolve", LLAMA), ("info",),
                          ("table", *ROPE, "-o", "-"), ("--help",), ("table", "--help"),
                          ("--version",)):
            self.expect(DONE, "", *arguments)

    def test_refused_input_names_the_field_the_rule_and_the_value(self):
        table = ("table", "-o", "-")
        for words, spec in (
                ("rope.rotary_dim: must be even, got 65", '{"rope": {"rotary_dim": 65}}'),
                ("alibi.num_heads", '{"alibi": {}}'),
                ("spec: one family is required", "{}"),
                ("head_dims", '{"rope": {"head_dims": 64}}'),
                ("spec: ", '{"rope": '),
                ("rope_theta", '{"rope": {"head_dim": 64, "rope_theta": "NaN"}}'),
        ):
            self.expect(REFUSED, words, *table, "--spec", spec, "--positions", "0:1")
        self.expect(REFUSED, "position_range.end", *table, "--spec", '{"rope": {"head_dim": 64}}',
                    "--positions", "9:5")
        self.expect(REFUSED, "selection", *table, "--spec", '{"rope": {"head_dim": 64}}')
        self.expect(REFUSED, "layout", *table, *ROPE, "--layout", "slopes")
        self.expect(REFUSED, "dtype", *table, *ROPE, "--dtype", "i32")

    def test_refused_configs(self):
        for words, config in (("", b"not json"), ("model_type", b"{}"),
                              ("no-such-model", b'{"model_type": "no-such-model"}'),
                              ("", b"{" * 100000), ("", b"")):
            with programs.folder() as folder:
                path = folder / "config.json"
                path.write_bytes(config)
                self.expect(REFUSED, words, "resolve", str(path))
                self.expect(REFUSED, words, "table", "--config", str(path), "-o", "-")

    def test_wrong_usage(self):
        table = ("table", "-o", "-")
        for words, arguments in (
                ("subcommand is required", ()),
                ("no-such-command", ("no-such-command",)),
                ("--no-such-flag", ("info", "--no-such-flag")),
                ("--spec or --config", table),
                ("excludes", (*table, *ROPE, "--config", LLAMA)),
                ("required", ("table", *ROPE)),
                (".safetensors or .npy", ("table", *ROPE, "-o", "table.bin")),
                ("--positions: must be B:E", (*table, "--config", LLAMA, "--positions", "5")),
                ("--positions: must be B:E", (*table, "--config", LLAMA, "--positions", "1:2:3")),
                ("--positions: must be B:E", (*table, "--config", LLAMA, "--positions", "0:1e3")),
                ("--positions: must be B:E",
                 (*table, "--config", LLAMA, "--positions", "0:9223372036854775808")),
                ("--position-ids", (*table, "--config", LLAMA, "--position-ids", "1,,2")),
                ("excludes", (*table, *ROPE, "--position-ids", "1")),
                ("excludes", (*table, *ALIBI, "--positions", "0:1")),
                ("requires", (*table, "--config", LLAMA, "--query-length", "4")),
                ("requires", (*table, "--config", LLAMA, "--key-length", "4")),
                ("requires", (*table, "--config", LLAMA, "--query-offset", "4")),
                ("query-length", (*table, *T5[:2], "--query-length", "x", "--key-length", "4")),
                ("requires", (*table, *ROPE, "--tower", "text")),
                ("requires", (*table, *ROPE, "--arithmetic", "exact")),
                ("--arithmetic", (*table, "--config", LLAMA, "--arithmetic", "fast")),
                ("requires", (*table, *ROPE, "--compat", "4.57")),
                ("--compat: must be 4.57, 5.16 or latest, got 3",
                 (*table, "--config", LLAMA, "--compat", "3")),
                ("--compat", ("check", LLAMA, "--compat", "3")),
                ("--dtype", (*table, *ROPE, "--dtype", "f8")),
                ("--layout", (*table, *ROPE, "--layout", "cosine")),
                ("trtllm_sin_cos, vllm, got no-such-stack",
                 (*table, *ROPE, "--profile", "no-such-stack")),
                ("--fail-on", ("check", LLAMA, "--fail-on", "always")),
                ("--server is required", ("health",)),
                ("posenc: --server: must be HOST:PORT with a port of 1 to 65535, or unix:PATH, got "
                 "127.0.0.1:99999", ("health", "--server", "127.0.0.1:99999")),
                ("got localhost\n", ("describe", *ROPE, "--server", "localhost")),
                ("got http://localhost:50051", ("check", LLAMA, "--server", "http://localhost:50051")),
                ("required", ("resolve",)),
                ("show-rows", (*table, *ROPE, "--show-rows", "-1")),
        ):
            self.expect(USAGE, words, *arguments)

    def test_a_misspelt_name_is_shown_as_typed_with_the_one_that_was_meant(self):
        for words, arguments in (
                ("posenc: not expected: --ouput x (did you mean --output?)\n",
                 ("table", *ROPE, "--ouput", "x")),
                ("not expected: --ouput=x (did you mean --output?)", ("table", "--ouput=x")),
                ("not expected: --dtpye f32 (did you mean --dtype?)",
                 ("table", *ROPE, "--dtpye", "f32", "-o", "-")),
                ("not expected: resolv x (did you mean resolve?)", ("resolv", "x")),
                ("not expected: --server x (--server stands after the command)",
                 ("--server", "x", "info")),
                ("not expected: --no-such-flag\n", ("info", "--no-such-flag")),
        ):
            self.expect(USAGE, words, *arguments)

    def test_a_refusal_in_the_words_of_the_api_has_the_flags_that_were_meant(self):
        bloom, phi = (str(programs.CONFIGS / name) for name in
                      ("bloom-560m.json", "Phi-3.5-mini-instruct.json"))
        table = ("table", "-o", "-", "--config")
        self.expect(REFUSED, "an attention_grid (flags: --query-length, --key-length)\n", *table,
                    bloom)
        self.expect(REFUSED, "to ask for more (flags: --positions, --sequence-length)\n", *table, phi,
                    "--positions", "0:131072")
        self.expect(REFUSED, "format.max_model_len: must be at least 1, got 0 (flag: --rows)\n",
                    *table, phi, "--profile", "vllm", "--max-model-len", "0")

    def test_reserved_commands_and_flags_are_not_taken(self):
        for arguments in (("diff",), ("lock",), ("plan",), ("compare",), ("precompute",),
                          ("verify",), ("info", "--timeout", "1"), ("info", "--tls-ca", "x"),
                          ("info", "--token-file", "x")):
            self.expect(USAGE, "", *arguments)

    def test_a_server_that_is_not_there(self):
        with socket.socket() as unused:  # bound, so nobody else takes it; not listening
            unused.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{unused.getsockname()[1]}"
            for arguments in (("health",), ("info",), ("describe", *ROPE), ("resolve", LLAMA),
                              ("table", *ROPE, "-o", "-")):
                self.expect(UNREACHABLE, address, *arguments, "--server", address)
        self.expect(UNREACHABLE, "unix:/nonexistent/socket", "health", "--server",
                    "unix:/nonexistent/socket")

    def test_a_server_that_is_full(self):
        with server("--max-concurrent-streams", "0") as (tcp, _):
            self.expect(UNREACHABLE, "attempts", "table", *ROPE, "-o", "-", "--server", tcp)

    def test_a_table_that_the_server_does_not_allow(self):
        with server("--max-table-bytes", "1000") as (tcp, _):
            self.expect(REFUSED, "max_table_bytes", "table", *ROPE, "-o", "-", "--server", tcp)

    def test_files_that_cannot_be_read(self):
        with programs.folder() as folder:
            self.expect_of_each(FILE, folder, folder / "config.json")

    def test_a_file_without_an_end(self):
        self.expect_of_each(REFUSED, "/dev/zero")

    def expect_of_each(self, code, *paths):
        for path in map(str, paths):
            self.expect(code, path, "resolve", path)
            self.expect(code, path, "describe", "--config", path)
            self.expect(code, path, "describe", "--spec", path)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "wb") as full:
            for arguments in (("info",), ("resolve", LLAMA), ("table", *ROPE, "-o", "-")):
                self.expect(FILE, "stdout: No space left", *arguments, stdout=full)
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "wb") as broken:
            self.expect(FILE, "stdout: Broken pipe", "table", *ROPE, "-o", "-", stdout=broken)


class Sources(unittest.TestCase):

    def test_a_model_is_a_folder_a_file_or_stdin(self):
        expected = run("resolve", LLAMA).stdout
        config = pathlib.Path(LLAMA).read_bytes()
        with programs.folder() as folder:
            (folder / "config.json").write_bytes(config)
            self.assertEqual(run("resolve", str(folder)).stdout, expected)
        with open(LLAMA, "rb") as stdin:
            self.assertEqual(run("resolve", "-", stdin=stdin).stdout, expected)
        with open(LLAMA, "rb") as stdin:
            self.assertEqual(
                run("table", "--config", "-", "-o", "-", "--positions", "0:9", stdin=stdin).stdout,
                table_bytes("--config", LLAMA, "--positions", "0:9"))

    def test_a_spec_is_json_or_a_file_of_it(self):
        with programs.folder() as folder:
            path = folder / "spec"
            path.write_text(ROPE[1])
            self.assertEqual(table_bytes("--spec", str(path), "--positions", "0:1000"),
                             table_bytes(*ROPE))

    def test_a_spec_takes_both_spellings_of_a_field(self):
        self.assertEqual(
            table_bytes("--spec", '{"rope": {"headDim": "128"}}', "--positions", "0:1000"),
            table_bytes(*ROPE))

    def test_the_canonical_spec_of_a_description_is_a_spec(self):
        for arguments in FAMILIES.values():
            header = describe(*arguments)["header"]
            again = describe("--spec", json.dumps(header["spec"]), *arguments[2:])["header"]
            self.assertEqual(again["table_id"], header["table_id"])

    def test_a_models_table_has_its_rows_and_its_dtype(self):
        for dtype in ((), ("--dtype", "auto")):
            header = describe("--config", LLAMA, *dtype)["header"]
            self.assertEqual(header["tensors"][0]["shape"], ["131072", "128"])
            self.assertEqual(header["format"]["dtype"], "DTYPE_BF16")

    def test_flags_of_a_model_reach_the_server(self):
        exact = describe("--config", LLAMA, "--arithmetic", "exact")["header"]
        self.assertEqual(exact["spec"]["rope"]["arithmetic"], "ARITHMETIC_EXACT")
        override = describe("--config", LLAMA, "--hf-overrides", '{"rope_theta": 1000.0}')["header"]
        self.assertEqual(override["spec"]["rope"]["rope_theta"], 1000)
        with programs.folder() as folder:
            model = str(folder / "config.json")
            pathlib.Path(model).write_text('{"model_type": "llama", "head_dim": 128, '
                                           '"rope_theta": 1e4, "partial_rotary_factor": 0.5}')
            for compat, width in (("4.57", "64"), ("4", "64"), ("5.16", "128"), ("5", "128"),
                                  ("latest", "64")):
                flag = ("--compat", compat)
                described = describe("--config", model, *flag)["header"]["spec"]
                self.assertEqual(described["rope"]["rotary_dim"], width, compat)
                resolved = json.loads(run("resolve", model, *flag).stdout)
                self.assertEqual(resolved["encodings"][0]["spec"]["rope"]["rotary_dim"], width)
        result = run("describe", "--config", LLAMA, "--tower", "no-such-tower")
        self.assertEqual(result.returncode, REFUSED)
        self.assertIn("no-such-tower", result.stderr.decode())


class Selections(unittest.TestCase):

    def test_ids_are_rows_of_the_range(self):
        rows = table_bytes(*ROPE)
        width = 128 * 4
        ids = table_bytes(*ROPE[:2], "--position-ids", "7,0,999")
        self.assertEqual(ids, b"".join(rows[i * width:(i + 1) * width] for i in (7, 0, 999)))

    def test_an_empty_range_is_a_table_of_no_rows(self):
        result = run("table", *ROPE[:2], "--positions", "5:5", "-o", "-")
        self.assertEqual((result.returncode, result.stdout), (DONE, b""))

    def test_a_query_offset_moves_the_grid(self):
        # Two queries of a decoder at positions 3 and 4 are the last rows of five.
        for family in (ALIBI[:2], T5[:2]):
            whole = table_bytes(*family, "--query-length", "5", "--key-length", "5")
            last = table_bytes(*family, "--query-length", "2", "--key-length", "5",
                               "--query-offset", "3")
            heads = len(whole) // 100
            expected = b"".join(whole[h * 100 + 60:(h + 1) * 100] for h in range(heads))
            self.assertEqual(last, expected)


class Formats(unittest.TestCase):

    def test_a_dtype_has_many_names(self):
        for names in (("f32", "float32", "F32", "torch.float32"), ("f64", "float64", "torch.double"),
                      ("f16", "half", "torch.float16"), ("bf16", "torch.bfloat16", "BFLOAT16")):
            ids = {describe(*ROPE, "--dtype", name)["header"]["table_id"] for name in names}
            self.assertEqual(len(ids), 1, names)

    def test_layouts_give_the_tensors_of_the_contract(self):
        rope, alibi, t5, sinusoidal = ROPE, ALIBI, T5, SINUSOIDAL
        for arguments, layout, tensors in (
                (rope, "cos_sin", {"cos_sin_cache": [1000, 128]}),
                (rope, "cos_and_sin_half", {"cos_cache": [1000, 64], "sin_cache": [1000, 64]}),
                (rope, "cos_and_sin_full", {"cos": [1000, 128], "sin": [1000, 128]}),
                (rope, "pairs", {"freqs_cis": [1000, 64, 2]}),
                (rope[:2], "inv_freq", {"inv_freq": [64]}),
                (sinusoidal, "table", {"positional_encoding": [3, 64]}),
                (alibi[:2], "slopes", {"alibi_slopes": [12]}),
                (alibi, "bias", {"attention_bias": [12, 50, 70]}),
                (alibi, "bias_vector", {"attention_bias_vector": [12, 119]}),
                (t5, "buckets", {"relative_position_bucket": [50, 70]}),
                (t5, "bucket_vector", {"relative_position_bucket_vector": [119]}),
        ):
            header = describe(*arguments, "--layout", layout)["header"]
            shapes = {t["name"]: [int(n) for n in t["shape"]] for t in header["tensors"]}
            self.assertEqual(shapes, tensors, layout)


    def test_rows_are_those_of_a_profiles_table_and_max_model_len_is_their_old_name(self):
        model = ("--config", str(programs.CONFIGS / "Phi-3.5-mini-instruct.json"),
                 "--profile", "vLLM")
        for flags, rows in (((), 4096 + 131072), (("--rows", "8192"), 4096 + 8192),
                            (("--max-model-len", "8192"), 4096 + 8192)):
            (tensor,) = describe(*model, *flags)["header"]["tensors"]
            self.assertEqual(tensor["shape"], [str(rows), "96"])


class WithAServer(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.context = server()
        cls.addresses = cls.context.__enter__()
        cls.addClassCleanup(cls.context.__exit__, None, None, None)

    def test_answers_are_the_embedded_librarys(self):
        for address in self.addresses:
            flag = ("--server", address)
            for arguments in FAMILIES.values():
                self.assertEqual(table_bytes(*arguments, *flag), table_bytes(*arguments))
                self.assertEqual(describe(*arguments, *flag), describe(*arguments))
            self.assertEqual(run("resolve", LLAMA, *flag).stdout, run("resolve", LLAMA).stdout)

    def test_refusals_are_the_embedded_librarys(self):
        for arguments in (("--spec", "{}"), ("--spec", '{"rope": {"head_dim": 7}}'),
                          (*ROPE, "--layout", "slopes")):
            embedded = run("describe", *arguments)
            served = run("describe", *arguments, "--server", self.addresses[0])
            self.assertEqual((served.returncode, served.stderr),
                             (embedded.returncode, embedded.stderr))

    def test_health_says_serving(self):
        for address in self.addresses:
            result = run("health", "--server", address)
            self.assertEqual((result.returncode, result.stdout), (DONE, b"serving\n"))

    def test_a_proxy_of_the_environment_is_not_asked_for_loopback(self):
        proxies = {name: "http://127.0.0.1:1" for name in ("http_proxy", "https_proxy", "grpc_proxy")}
        proxies["no_proxy"] = proxies["no_grpc_proxy"] = ""
        for address in (*self.addresses, "localhost:" + self.addresses[0].split(":")[1]):
            result = run("health", "--server", address, env=proxies)
            self.assertEqual(result.returncode, DONE, result.stderr)

    def test_info_has_the_servers_limits(self):
        info = json.loads(run("info", "--server", self.addresses[0]).stdout)
        self.assertEqual(info["limits"]["max_concurrent_streams"], "128")
        self.assertEqual(json.loads(run("info").stdout)["limits"]["max_concurrent_streams"], "0")

    def test_the_flag_beats_the_environment(self):
        variable = {"POSENC_SERVER": "unix:/nonexistent/socket"}
        self.assertEqual(run("info", env=variable).returncode, UNREACHABLE)
        self.assertEqual(
            run("health", "--server", self.addresses[0], env=variable).returncode, DONE)
        self.assertEqual(run("health", env={"POSENC_SERVER": self.addresses[0]}).returncode, DONE)
        self.assertEqual(run("info", env={"POSENC_SERVER": ""}).returncode, DONE, "is unset")

    def test_the_summary_is_the_same_with_and_without(self):
        embedded = summary(run("table", *ROPE, "-o", "-").stderr)
        served = summary(run("table", *ROPE, "-o", "-", "--server", self.addresses[0]).stderr)
        self.assertEqual(served, embedded)
        self.assertRegex(embedded["content_hash"], "^[0-9a-f]{32}$")


if __name__ == "__main__":
    unittest.main()
