"""The calls of README.md run as they stand there, and its tables of flags are the programs'."""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import unittest

import programs

EXAMPLE = pathlib.Path(__file__).with_name("readme_example.py")
MODEL_EXAMPLE = EXAMPLE.with_name("readme_model_example.py")
README = pathlib.Path(__file__).parents[2] / "README.md"

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "s": 1}


def plain(default):
    """A default of the table as --help has it: "16 GiB" is 17179869184."""
    words = default.split()
    if len(words) == 2 and words[1] in UNITS:
        return str(int(words[0]) * UNITS[words[1]])
    return {"on": "1", "off": None}.get(default, default)


def flag_rows(text):
    return re.findall(r"^\| (`--.*?`) \| (.*?) \|", text, re.MULTILINE)


class ReadmeTest(unittest.TestCase):

    def test_the_calls_stand_in_the_readme_word_for_word(self):
        readme = README.read_text()
        for example in (EXAMPLE, MODEL_EXAMPLE):
            self.assertIn(example.read_text().split('"""\n')[-1], readme)
        cpp = EXAMPLE.with_suffix(".cc").read_text()
        self.assertIn(cpp[cpp.index("#include"):], readme)

    def test_the_python_call_prints_what_the_readme_says(self):
        with programs.server() as (tcp, _):
            result = subprocess.run([sys.executable, "-B", str(EXAMPLE), tcp], check=True,
                                    stdout=subprocess.PIPE, timeout=60)
        output = result.stdout.decode()
        self.assertIn(f"```\n{output}```", README.read_text())
        # cos 1 and sin 1 rounded to float32, as numpy prints them.
        self.assertIn("cos_cache (4096, 64) [0.5403023 ", output)
        self.assertIn("sin_cache (4096, 64) [0.84147096 ", output)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "needs torch")
    def test_the_python_call_for_a_model_prints_what_the_readme_says(self):
        with programs.server() as (tcp, _):
            result = subprocess.run([sys.executable, "-B", str(MODEL_EXAMPLE), tcp, programs.LLAMA],
                                    check=True, stdout=subprocess.PIPE, timeout=60)
        output = result.stdout.decode()
        self.assertIn(f"```\n{output}```", README.read_text())
        # cos 1 rounded to bfloat16, as torch prints it.
        self.assertIn("cos_sin_cache (131072, 128) tensor([0.5391, ", output)

    def test_the_table_of_flags_has_every_flag_and_its_default(self):
        rows = flag_rows(README.read_text().split("## The server")[1])
        table = {flag: default for flags, defaults in rows
                 for flag, default in zip(re.findall(r"--[a-z-]+", flags), defaults.split(", "))}
        text = subprocess.run([programs.SERVER, "--help"], check=True,
                              stdout=subprocess.PIPE).stdout.decode()
        flags = dict(re.findall(r"^  (--[a-z-]+)(?: .*?=(\S+))? ", text, re.MULTILINE))
        flags.pop("--version")
        self.assertEqual(table.keys(), flags.keys())
        for flag, default in flags.items():
            if default.strip("[]") == "0":  # named in words
                continue
            with self.subTest(flag):
                self.assertEqual(plain(table[flag]), default.strip("[]") or None)

    def test_the_table_of_the_tools_flags_has_every_flag_of_every_command(self):
        table = {}
        for flags, commands in flag_rows(README.read_text().split("## The server")[0]):
            for command in commands.split(", "):
                table.setdefault(command, set()).update(re.findall(r"--[a-z-]+", flags))
        for command in ("table", "describe", "resolve", "check", "info", "health"):
            with self.subTest(command):
                text = programs.run(command, "--help").stdout.decode()
                flags = set(re.findall(r"^  (?:-\w,)?(--[a-z-]+)", text, re.MULTILINE))
                self.assertEqual(table[command], flags - {"--help"})


if __name__ == "__main__":
    unittest.main()
