"""The Python call of README.md runs as it stands there."""
import pathlib
import subprocess
import sys
import unittest

import programs

EXAMPLE = pathlib.Path(__file__).with_name("readme_example.py")
README = pathlib.Path(__file__).parents[2] / "README.md"


class ReadmeTest(unittest.TestCase):

    def test_both_calls_stand_in_the_readme_word_for_word(self):
        readme = README.read_text()
        python = EXAMPLE.read_text()
        self.assertIn(python[python.index("import sys"):], readme)
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


if __name__ == "__main__":
    unittest.main()
