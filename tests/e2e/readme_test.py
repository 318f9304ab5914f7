"""The Python call of README.md runs as it stands there."""
import pathlib
import subprocess
import sys
import unittest

import programs

EXAMPLE = pathlib.Path(__file__).with_name("readme_example.py")


class ReadmeTest(unittest.TestCase):

    def test_the_python_call_prints_the_table(self):
        with programs.server() as (tcp, _):
            result = subprocess.run([sys.executable, "-B", str(EXAMPLE), tcp], check=True,
                                    stdout=subprocess.PIPE, timeout=60)
        lines = result.stdout.decode().splitlines()
        self.assertRegex(lines[0], "^table   [0-9a-f]{32}$")
        self.assertRegex(lines[1], "^content [0-9a-f]{32}$")
        # cos 1 and sin 1 rounded to float32, as numpy prints them.
        self.assertTrue(lines[2].startswith("cos_cache (4096, 64) [0.5403023 "), lines[2])
        self.assertTrue(lines[3].startswith("sin_cache (4096, 64) [0.84147096 "), lines[3])


if __name__ == "__main__":
    unittest.main()
