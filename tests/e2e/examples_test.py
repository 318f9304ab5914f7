"""Every command of deploy/examples/*.md, run as it stands there.

A line that begins with `$ posenc` is a command; the lines that follow are the
tensors that its file must hold: name, dtype and shape. `-o` names the file.
"""
import json
import pathlib
import re
import shlex
import unittest

import programs

ROOT = pathlib.Path(__file__).parent.parent.parent
DTYPES = {"F32": "f32", "F64": "f64", "F16": "f16", "BF16": "bf16", "I32": "i32", "BOOL": "bool"}


def examples(path):
    """[(command, [expected lines])] of the sh blocks of a file."""
    found = []
    for block in re.findall(r"```sh\n(.*?)```", path.read_text(), re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ posenc "):
                found.append((line[len("$ posenc "):], []))
            elif found:
                found[-1][1].append(line)
    return found


class Examples(unittest.TestCase):

    def test_every_command_makes_the_tensors_that_the_text_says(self):
        count = 0
        for path in sorted((ROOT / "deploy" / "examples").glob("*.md")):
            for command, tensors in examples(path):
                with self.subTest(command=command), programs.folder() as folder:
                    arguments = shlex.split(command)
                    file = folder / arguments[arguments.index("-o") + 1]
                    arguments[arguments.index("-o") + 1] = str(file)
                    result = programs.run(*arguments, cwd=ROOT)
                    self.assertEqual(result.returncode, programs.DONE, result.stderr.decode())
                    _, content = programs.read_safetensors(file)
                    made = [f"{name} {DTYPES[dtype]} {shape}"
                            for name, (dtype, shape, _) in content.items()]
                    self.assertEqual(made, tensors)
                    self.assertTrue(tensors, "says nothing of what comes out")
                    count += 1
        self.assertGreaterEqual(count, 17)

    def test_every_family_has_an_example(self):
        with programs.server() as (address, _):
            info = json.loads(programs.run("info", "--server", address).stdout)
        families = {encoding["family"] for encoding in info["encodings"]}
        self.assertGreater(len(families), 20)
        shown = set()
        for path in (ROOT / "deploy" / "examples").glob("*.md"):
            for command, _ in examples(path):
                arguments = shlex.split(command)
                if "--spec" in arguments:
                    shown.update(json.loads(arguments[arguments.index("--spec") + 1]))
        self.assertEqual(families - shown, set())

    def test_selections_that_do_not_parse_are_wrong_usage(self):
        table = ("table", "--spec", '{"sinusoidal_grid": {"d_model": 8}}', "-o", "-")
        for words, code, flags in (
                ("--grid: must be HxW or TxHxW", programs.USAGE, ("--grid", "14")),
                ("--grid: must be HxW or TxHxW", programs.USAGE, ("--grid", "2x2x2x2")),
                ("--grid: must be HxW or TxHxW", programs.USAGE, ("--grid", "1xax2x3")),
                ("excludes", programs.USAGE, ("--grid", "2x2", "--positions", "0:1")),
                ("excludes", programs.USAGE, ("--grid", "2x2", "--selection", "{}")),
                ("selection", programs.REFUSED, ("--selection", '{"patch_gird": {}}')),
                ("selection.patch_grid.width: is required", programs.REFUSED,
                 ("--selection", '{"patch_grid": {"height": 2}}')),
                ("no-such-file", programs.FILE, ("--selection", "no-such-file")),
        ):
            with self.subTest(flags=flags):
                result = programs.run(*table, *flags)
                self.assertEqual(result.returncode, code, result.stderr.decode())
                self.assertIn(words, result.stderr.decode())


if __name__ == "__main__":
    unittest.main()
