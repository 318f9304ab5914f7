"""The tool and the server as processes, for the tests of this folder.

CTest passes their paths in POSENC_BINARY and POSENC_SERVER_BINARY.
"""
import contextlib
import json
import os
import pathlib
import struct
import subprocess
import tempfile

TOOL = os.environ["POSENC_BINARY"]
SERVER = os.environ["POSENC_SERVER_BINARY"]
CONFIGS = pathlib.Path(__file__).parent.parent / "golden" / "configs"
LLAMA = str(CONFIGS / "Meta-Llama-3.1-8B.json")

# What a table is asked for, in the words of the tool.
ROPE = ("--spec", '{"rope": {"head_dim": 128}}', "--positions", "0:1000")
ALIBI = ("--spec", '{"alibi": {"num_heads": 12}}', "--query-length", "50", "--key-length", "70")
T5 = ("--spec", '{"t5": {}}', "--query-length", "50", "--key-length", "70")
SINUSOIDAL = ("--spec", '{"sinusoidal": {"d_model": 64}}', "--position-ids", "5,0,77")
FAMILIES = {"rope": ROPE, "alibi": ALIBI, "t5": T5, "sinusoidal": SINUSOIDAL}

DONE, REFUSED, USAGE, UNREACHABLE, FILE, INTERNAL = range(6)


def run(*arguments, env=None, **options):
    """Runs the tool to its end; POSENC_SERVER is only set when `env` says so."""
    variables = {k: v for k, v in os.environ.items() if k != "POSENC_SERVER"}
    # A sanitizer's own end must not look like a refusal (1).
    variables.update(ASAN_OPTIONS="exitcode=99", UBSAN_OPTIONS="exitcode=99")
    variables.update(env or {})
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([TOOL, *arguments], stderr=subprocess.PIPE, env=variables, timeout=120,
                          check=False, **options)


def describe(*arguments, **options):
    result = run("describe", *arguments, **options)
    assert result.returncode == DONE, result.stderr.decode()
    return json.loads(result.stdout)


def table_bytes(*arguments):
    """The raw bytes of a table."""
    result = run("table", *arguments, "-o", "-")
    assert result.returncode == DONE, result.stderr.decode()
    return result.stdout


def summary(text):
    """The lines of `posenc table` as a dictionary: table_id, content_hash, tensors ..."""
    return {words[0]: " ".join(words[1:])
            for words in (line.split() for line in text.decode().splitlines()[1:])}


def read_safetensors(path):
    """(metadata, {name: (dtype, shape, bytes)}), by the description of the format alone."""
    content = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + size])
    data = content[8 + size:]
    metadata = header.pop("__metadata__")
    tensors = {}
    end = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        assert entry["data_offsets"][0] == end, "a hole"
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["dtype"], entry["shape"], data[begin:end])
    assert end == len(data), "bytes that belong to no tensor"
    assert (8 + size) % 8 == 0, "data is not aligned"
    return metadata, tensors


@contextlib.contextmanager
def server(*flags):
    """A server on loopback and on a Unix socket; yields the two addresses."""
    with tempfile.TemporaryDirectory() as folder:
        command = [SERVER, "--listen", "127.0.0.1:0", "--listen", f"unix:{folder}/socket",
                   "--log-level", "warning", *flags]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                lines = [process.stdout.readline().decode().strip() for _ in range(2)]
                assert all(line.startswith("listening on ") for line in lines), lines
                yield [line.removeprefix("listening on ") for line in lines]
            finally:
                process.terminate()
                assert process.wait(timeout=60) == 0, "the server did not stop as asked"


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as path:
        yield pathlib.Path(path)
