"""What `posenc table` writes, read by other programs, and what it leaves behind when it fails."""
import ast
import json
import os
import pty
import resource
import signal
import struct
import subprocess
import time
import unittest

import fake_server
import numpy
import programs
from programs import (ALIBI, DONE, FAMILIES, FILE, INTERNAL, LLAMA, REFUSED, ROPE, TOOL,
                      UNREACHABLE, read_safetensors, run, summary, table_bytes)

# 1 GiB: large against every buffer, and quick to make.
LARGE = ("--spec", '{"alibi": {"num_heads": 16}}', "--query-length", "4096", "--key-length", "4096")


class Folder(unittest.TestCase):
    """Each test has a folder of its own."""

    def setUp(self):
        self.folder = self.enterContext(programs.folder())

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def write(self, name, *arguments, **options):
        """Writes a table; returns (path, summary)."""
        path = self.folder / name
        result = run("table", *arguments, "-o", str(path), **options)
        self.assertEqual(result.returncode, DONE, result.stderr.decode())
        return path, summary(result.stdout)


class Tables(Folder):
    """--table: numbers of the model's own, from its files."""

    BIAS = ("--spec", '{"t5": {"num_buckets": 32}}', "--layout", "bias", "--query-length", "5",
            "--key-length", "7")

    def test_a_bias_table_from_both_formats(self):
        numbers = numpy.arange(32 * 4, dtype="<f4").reshape(32, 4)
        numpy.save(self.folder / "table.npy", numbers)
        path, _ = self.write("bias.npy", *self.BIAS, "--table", str(self.folder / "table.npy"))
        buckets = numpy.frombuffer(table_bytes(*self.BIAS[:2], *self.BIAS[4:]), "<i4")
        expected = numbers[buckets].reshape(5, 7, 4).transpose(2, 0, 1)
        self.assertTrue((numpy.load(path) == expected).all())

        header = json.dumps({"relative_attention_bias.weight": {
            "dtype": "F32", "shape": [32, 4], "data_offsets": [0, 512]}}).encode()
        checkpoint = self.folder / "model.safetensors"
        checkpoint.write_bytes(struct.pack("<Q", len(header)) + header + numbers.tobytes())
        again, _ = self.write("again.npy", *self.BIAS, "--table",
                              f"bias_table={checkpoint}:relative_attention_bias.weight")
        self.assertEqual(again.read_bytes(), path.read_bytes())

    def test_a_large_one_is_uploaded_to_the_server(self):
        numpy.save(self.folder / "table.npy", numpy.ones((65536, 32), "<f4"))
        request = ("--spec", '{"table_resample": {}}', "--grid", "300x200",
                   "--table", str(self.folder / "table.npy"))
        _, embedded = self.write("embedded.npy", *request)
        with programs.server() as (address, _):
            path, served = self.write("served.npy", *request, "--server", address)
        self.assertEqual(served["table_id"], embedded["table_id"])
        self.assertEqual(served["content_hash"], embedded["content_hash"])
        self.assertEqual(numpy.load(path).shape, (60000, 32))

    def test_a_wrong_file_is_said_so(self):
        result = run("table", *self.BIAS, "--table", str(self.folder / "none.npy"), "-o", "-")
        self.assertEqual(result.returncode, FILE)
        self.assertIn("none.npy: No such file or directory", result.stderr.decode())


class Safetensors(Folder):

    def test_it_holds_the_bytes_of_the_table(self):
        for name, arguments in FAMILIES.items():
            path, _ = self.write(f"{name}.safetensors", *arguments)
            _, tensors = read_safetensors(path)
            self.assertEqual(b"".join(t[2] for t in tensors.values()), table_bytes(*arguments))
        self.assertEqual(len(self.names()), len(FAMILIES), "and nothing stands beside")

    def test_its_metadata_says_what_it_is(self):
        path, said = self.write("a.safetensors", "--config", LLAMA, "--positions", "0:100")
        metadata, _ = read_safetensors(path)
        self.assertEqual(
            sorted(metadata),
            sorted(["format", "table_id", "content_hash", "numerics_version", "spec",
                    "attention_factor", "pairing", "profile"]))
        self.assertTrue(all(isinstance(value, str) for value in metadata.values()))
        self.assertEqual(metadata["format"], "pt")
        for key in ("table_id", "content_hash", "numerics_version", "attention_factor"):
            self.assertEqual(metadata[key], said[key], key)
        self.assertEqual(metadata["pairing"], "half")

    def test_its_spec_asks_for_the_same_table(self):
        path, _ = self.write("a.safetensors", "--config", LLAMA, "--positions", "0:100")
        metadata, tensors = read_safetensors(path)
        self.assertEqual(
            table_bytes("--spec", metadata["spec"], "--positions", "0:100", "--dtype", "bf16"),
            tensors["cos_sin_cache"][2])

    def test_several_tensors_follow_one_another(self):
        path, _ = self.write("a.safetensors", *ROPE, "--layout", "cos_and_sin_half", "--dtype", "f16")
        _, tensors = read_safetensors(path)
        self.assertEqual({name: t[:2] for name, t in tensors.items()},
                         {"cos_cache": ("F16", [1000, 64]), "sin_cache": ("F16", [1000, 64])})

    def test_an_empty_table_is_a_file(self):
        path, _ = self.write("a.safetensors", *ROPE[:2], "--positions", "7:7")
        self.assertEqual(read_safetensors(path)[1], {"cos_sin_cache": ("F32", [0, 128], b"")})

    def test_the_attention_factor_reads_back_bit_for_bit(self):
        spec = ('{"rope": {"head_dim": 64, "yarn": {"factor": 40, '
                '"original_max_position_embeddings": 4096}}}')
        path, _ = self.write("a.safetensors", "--spec", spec, "--positions", "0:1")
        metadata, tensors = read_safetensors(path)
        factor = float(metadata["attention_factor"])
        self.assertEqual(numpy.float32(factor),
                         numpy.frombuffer(tensors["cos_sin_cache"][2], "<f4")[0], "cos 0 = 1")


class Npy(Folder):

    def test_numpy_reads_it(self):
        for dtype, descr in (("f32", "<f4"), ("f64", "<f8"), ("f16", "<f2")):
            path, _ = self.write(f"{dtype}.npy", *ROPE, "--dtype", dtype)
            array = numpy.load(path)
            self.assertEqual((array.dtype.str, array.shape), (descr, (1000, 128)))
            self.assertEqual(array.tobytes(), table_bytes(*ROPE, "--dtype", dtype))
        path, _ = self.write("buckets.npy", *programs.T5)
        self.assertEqual((numpy.load(path).dtype.str, numpy.load(path).shape), ("<i4", (50, 70)))

    def test_its_header_is_as_the_format_says(self):
        for arguments in (ROPE, (*ALIBI[:2], "--layout", "slopes"), ALIBI):
            content = self.write("a.npy", *arguments)[0].read_bytes()
            size = int.from_bytes(content[8:10], "little")
            self.assertEqual(content[:8], b"\x93NUMPY\x01\x00")
            self.assertEqual((10 + size) % 64, 0)
            header = ast.literal_eval(content[10:10 + size].decode())
            self.assertEqual(sorted(header), ["descr", "fortran_order", "shape"])
            self.assertIsInstance(header["shape"], tuple)

    def test_what_it_cannot_hold_is_refused_and_the_other_format_named(self):
        for arguments in ((*ROPE, "--dtype", "bf16"), (*ROPE, "--layout", "cos_and_sin_full"),
                          ("--config", LLAMA)):
            result = run("table", *arguments, "-o", str(self.folder / "a.npy"))
            self.assertEqual(result.returncode, REFUSED)
            self.assertIn(b".safetensors", result.stderr)
            self.assertEqual(self.names(), [])


class OldFiles(Folder):
    """An old file stays whole whatever goes wrong, and nothing is left beside it."""

    def expect_whole(self, code, *arguments, name="old.safetensors", **options):
        path = self.folder / name
        path.write_bytes(b"old")
        result = run("table", *arguments, "-o", str(path), **options)
        self.assertEqual(result.returncode, code, result.stderr.decode())
        self.assertEqual(path.read_bytes(), b"old")
        self.assertEqual(self.names(), [name])

    def test_when_the_input_is_refused(self):
        self.expect_whole(REFUSED, "--spec", "{}")

    def test_when_the_server_is_not_there(self):
        self.expect_whole(UNREACHABLE, *ROPE, "--server", "unix:/nonexistent/socket")

    def test_when_the_server_sends_what_does_not_hold(self):
        for fault, words in ((fake_server.WRONG_CHECKSUM, "checksum"),
                             (fake_server.SHORT, "ended at byte"),
                             (fake_server.WRONG_OFFSET, "offset"),
                             (fake_server.INTERNAL, "out of order")):
            with fake_server.running(fault) as address:
                self.expect_whole(INTERNAL, *ROPE, "--server", address)
                result = run("table", *ROPE, "-o", "-", "--server", address)
                self.assertEqual(result.returncode, INTERNAL)
                self.assertIn(words, result.stderr.decode())

    def test_when_the_disk_is_full(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

        self.expect_whole(FILE, *LARGE, preexec_fn=limit)

    def test_when_the_tool_is_ended_by_a_signal(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            path = self.folder / "old.safetensors"
            path.write_bytes(b"old")
            # The table comes from a server that sends one message and then no more.
            with fake_server.running(fake_server.STALL) as address, subprocess.Popen(
                    [TOOL, "table", *ROPE, "--server", address, "-o", str(path)]) as process:
                deadline = time.monotonic() + 60
                while len(self.names()) < 2 and time.monotonic() < deadline:
                    time.sleep(0.01)
                self.assertEqual(len(self.names()), 2, "the new file is being written")
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=60), -number)
            self.assertEqual(path.read_bytes(), b"old")
            self.assertEqual(self.names(), ["old.safetensors"])

    def test_a_complete_one_replaces_it(self):
        (self.folder / "old.safetensors").write_bytes(b"old")
        path, _ = self.write("old.safetensors", *ROPE)
        self.assertEqual(read_safetensors(path)[1]["cos_sin_cache"][2], table_bytes(*ROPE))
        self.assertEqual(self.names(), ["old.safetensors"])

    def test_a_folder_in_its_place_is_an_error(self):
        (self.folder / "a.npy").mkdir()
        result = run("table", *ROPE, "-o", str(self.folder / "a.npy"))
        self.assertEqual(result.returncode, FILE)
        result = run("table", *ROPE, "-o", str(self.folder / "no" / "a.npy"))
        self.assertEqual(result.returncode, FILE)
        self.assertEqual(self.names(), ["a.npy"])


class LongWork(unittest.TestCase):

    def test_memory_does_not_grow_with_the_table(self):
        with programs.server() as (tcp, _):
            for server in ((), ("--server", tcp)):
                process = subprocess.Popen([TOOL, "table", *LARGE, *server, "-o", "-"],
                                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                error = process.stderr.read()
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                process.stderr.close()
                self.assertEqual(process.returncode, DONE, error)
                self.assertIn(b"1073741824 bytes", error)
                # Half the table; without sanitizers it is below 32 MiB.
                self.assertLess(usage.ru_maxrss, 512 << 10)

    def run_slowly(self, stderr):
        """Takes the first bytes of a table and the rest two seconds later."""
        with subprocess.Popen([TOOL, "table", *LARGE, "-o", "-"], stdout=subprocess.PIPE,
                              stderr=stderr) as process:
            process.stdout.read(1)
            time.sleep(2)
            while process.stdout.read(1 << 20):
                pass
            self.assertEqual(process.wait(timeout=60), DONE)

    def test_progress_is_shown_on_a_terminal_only(self):
        terminal, its_end = pty.openpty()
        self.run_slowly(its_end)
        os.close(its_end)
        shown = b""
        try:
            while piece := os.read(terminal, 1 << 16):
                shown += piece
        except OSError:  # how a terminal ends
            pass
        os.close(terminal)
        self.assertRegex(shown, rb"\r +\d+%  \d+ of 1024 MiB")
        self.assertIn(b"\r\x1b[K", shown, "and cleared at the end")

        reader, writer = os.pipe()
        self.run_slowly(writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as plain:
            self.assertNotIn(b"%", plain.read())


class Rows(unittest.TestCase):

    def test_the_first_rows_are_shown_with_their_positions(self):
        result = run("table", *ROPE[:2], "--positions", "3:9", "--show-rows", "2", "-o", "-")
        lines = result.stderr.decode().splitlines()[-2:]
        row = numpy.frombuffer(result.stdout, "<f4").reshape(6, 128)
        for i, line in enumerate(lines):
            label, values = line.split(": ")
            self.assertEqual(label.strip(), f"cos_sin_cache[position {3 + i}]")
            shown = [float(value) for value in values.split() if value != "..."]
            numpy.testing.assert_allclose(shown, numpy.r_[row[i, :4], row[i, -4:]], rtol=1e-5)


if __name__ == "__main__":
    unittest.main()
