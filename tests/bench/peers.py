"""What others would compute: reads the name of a case from each line of stdin,
runs it once, and prints the seconds it took (or inf when it cannot run). The line
"differences PATH" compares a table with torch's and prints two numbers."""
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

    TORCH_OUT = [torch.empty(POSITIONS, PAIRS) for _ in range(3)]

    def torch_rope_out():
        angle, cos, sin = TORCH_OUT
        torch.outer(torch.arange(POSITIONS, dtype=torch.float32), torch_inv_freq(), out=angle)
        torch.cos(angle, out=cos)
        torch.sin(angle, out=sin)

    def torch_hf():
        """Of half the positions: as many bytes as the others."""
        angle = torch.outer(torch.arange(POSITIONS // 2, dtype=torch.float32), torch_inv_freq())
        both = torch.cat((angle, angle), dim=-1)
        return both.cos(), both.sin()

    def torch_sinusoidal():
        position = torch.arange(4096, dtype=torch.float32).unsqueeze(1)
        step = -torch.log(torch.tensor(10000.0)) / 1024
        angle = position * torch.exp(torch.arange(0, 1024, 2, dtype=torch.float32) * step)
        table = torch.zeros(4096, 1024)
        table[:, 0::2], table[:, 1::2] = torch.sin(angle), torch.cos(angle)
        return table

    def relative_position(length):
        return torch.arange(length)[None, :] - torch.arange(length)[:, None]

    def torch_alibi():
        """One head of 64 MiB."""
        return relative_position(4096)[None].float() * torch.tensor([0.5]).view(-1, 1, 1)

    def torch_alibi_bf16():
        """As MPT's build_alibi_bias with full=True, two heads of 32 MiB."""
        bias = torch.arange(1 - 4096, 1, dtype=torch.int32).view(1, 1, 1, 4096)
        bias = bias - torch.arange(1 - 4096, 1, dtype=torch.int32).view(1, 1, 4096, 1)
        bias = bias.abs().mul(-1)
        slopes = torch.tensor([0.5, 0.25]).view(1, 2, 1, 1)
        return (bias * slopes).to(dtype=torch.bfloat16)

    def torch_t5():
        """As T5Attention._relative_position_bucket, bidirectional."""
        relative = relative_position(4096)
        buckets = (relative > 0).to(torch.long) * 16
        relative = torch.abs(relative)
        large = 8 + (torch.log(relative.float() / 8) / numpy.log(128 / 8) * 8).to(torch.long)
        large = torch.min(large, torch.full_like(large, 15))
        return buckets + torch.where(relative < 8, relative, large)

    CASES.update({"torch rope": torch_rope, "torch rope out=": torch_rope_out,
                  "torch vllm": torch_vllm, "torch hf half": torch_hf,
                  "torch sinusoidal": torch_sinusoidal, "torch alibi": torch_alibi,
                  "torch alibi bf16": torch_alibi_bf16, "torch t5": torch_t5})

    def torch_differences(path):
        """Of a table of ours, cos and sin in float32: the largest difference to torch's in
        units in the last place, and how many of a million differ when rounded to bf16."""
        ours = torch.from_numpy(numpy.fromfile(path, numpy.float32)).view(2, POSITIONS, PAIRS)
        theirs = torch.stack(torch_rope())
        bits = [t.view(torch.int32) for t in (ours, theirs)]
        # From -0 down, patterns are in the order of their values when they are negated.
        ordered = [torch.where(b < 0, -(b & 0x7fffffff), b).long() for b in bits]
        differ = ours.bfloat16().view(torch.int16) != theirs.bfloat16().view(torch.int16)
        return (ordered[0] - ordered[1]).abs().max().item(), differ.double().mean().item() * 1e6

    DIFFERENCES = torch_differences
except ImportError:
    DIFFERENCES = None


def differences(path):
    return DIFFERENCES(path) if DIFFERENCES else ("inf", "inf")


for line in sys.stdin:
    if line.startswith("differences "):
        print(*differences(line.split()[1]), flush=True)
        continue
    case = CASES.get(line.strip())
    if case is None:
        print("inf", flush=True)
        continue
    begin = time.perf_counter()
    case()
    print(time.perf_counter() - begin, flush=True)
