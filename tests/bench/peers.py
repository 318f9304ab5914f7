"""What others would compute: reads the name of a case from each line of stdin,
runs it once, and prints the seconds it took (or inf when it cannot run)."""
import sys
import time

import numpy

POSITIONS, PAIRS, THETA = 131072, 64, 500000.0


def inv_freq(module, kind):
    exponent = module.arange(0, 2 * PAIRS, 2).astype(kind) / (2 * PAIRS)
    return (1.0 / THETA ** exponent).astype(kind)


def numpy_rope():
    angle = numpy.arange(POSITIONS, dtype=numpy.float32)[:, None] * inv_freq(numpy, numpy.float32)
    return numpy.cos(angle), numpy.sin(angle)


ANGLE = numpy.empty((POSITIONS, PAIRS), numpy.float32)
COS, SIN = numpy.empty_like(ANGLE), numpy.empty_like(ANGLE)


def numpy_rope_out():
    positions = numpy.arange(POSITIONS, dtype=numpy.float32)[:, None]
    numpy.multiply(positions, inv_freq(numpy, numpy.float32), out=ANGLE)
    numpy.cos(ANGLE, out=COS)
    numpy.sin(ANGLE, out=SIN)


def numpy_sinusoidal():
    k = numpy.arange(512)
    angle = numpy.arange(4096)[:, None] / 10000.0 ** (2 * k / 1024)
    table = numpy.empty((4096, 1024), numpy.float32)
    table[:, 0::2], table[:, 1::2] = numpy.sin(angle), numpy.cos(angle)
    return table


CASES = {"numpy rope": numpy_rope, "numpy rope out=": numpy_rope_out,
         "numpy sinusoidal": numpy_sinusoidal}

try:
    import torch

    torch.set_num_threads(1)

    def torch_inv_freq():
        return 1.0 / THETA ** (torch.arange(0, 2 * PAIRS, 2, dtype=torch.float32) / (2 * PAIRS))

    def torch_rope():
        angle = torch.outer(torch.arange(POSITIONS, dtype=torch.float32), torch_inv_freq())
        return torch.cos(angle), torch.sin(angle)

    def torch_vllm():
        return torch.cat(torch_rope(), dim=-1)

    CASES["torch rope"] = torch_rope
    CASES["torch vllm"] = torch_vllm
except ImportError:
    pass


for line in sys.stdin:
    case = CASES.get(line.strip())
    if case is None:
        print("inf", flush=True)
        continue
    begin = time.perf_counter()
    case()
    print(time.perf_counter() - begin, flush=True)
