"""Made tests/golden/beit_stretch.jsonl, with SciPy 1.10.1 and NumPy 1.24.2:

  python3 tests/golden/beit_stretch.py > tests/golden/beit_stretch.jsonl

What unilm does is executed: SciPy's interp2d (gone since 1.14). What timm does is written
out below in float32, as its interpolator works. Nothing here is needed to build or test.
"""
import json
import random
import warnings

import numpy as np
from scipy import interpolate

SAMPLES = 40  # of a line, besides the corners
# Splines of numbers in [-1, 1): the code measured 5e-15 from SciPy over these tables.
SPLINE_TOLERANCE = 1e-13
# float32 holds a coordinate near 27 to 1e-6, and so its weights; measured 1e-6.
LINEAR_TOLERANCE = 2e-6

# (height, width, new height, new width, heads) of the offsets of windows, 2 window - 1.
SQUARE = [(13, 13, 23, 23, 12), (27, 27, 47, 47, 12), (27, 27, 55, 55, 16), (5, 5, 9, 9, 3),
          (27, 27, 13, 13, 4), (5, 5, 45, 45, 2)]
OTHER = [(27, 27, 27, 31, 4), (7, 13, 19, 5, 3)]
LINEAR_ALONE = [(3, 3, 7, 7, 2), (1, 9, 5, 17, 2)]


def table(height, width, heads):
    """Hashed indices, exact in float32: [height * width + 3, heads]."""
    i = np.arange((height * width + 3) * heads, dtype=np.uint64)
    bits = (i * np.uint64(2654435761) % np.uint64(2**32)) >> np.uint64(16)
    return (bits.astype(np.float64) / 32768 - 1).astype(np.float32).reshape(-1, heads)


def source_coordinates(size, new_size):
    """Bisection for the ratio whose powers sum to half of the new size."""
    low, high = 1.01, 1.5
    while high - low > 1e-6:
        ratio = (low + high) / 2
        if (1 - ratio**(size // 2)) / (1 - ratio) > new_size // 2:
            high = ratio
        else:
            low = ratio
    right = [1]
    for power in range(1, size // 2):
        right.append(right[-1] + ratio**power)
    right = right[:size // 2]
    return [-x for x in reversed(right)] + [0] + right


def integers(size):
    return np.arange(-(size // 2), size // 2 + 1, dtype=np.float64)


def spline(head, height, width):
    """One head [h, w], float64."""
    f = interpolate.interp2d(source_coordinates(head.shape[1], width),
                             source_coordinates(head.shape[0], height), head, kind="cubic")
    return f(integers(width), integers(height))


def linear(head, height, width):
    """One head [h, w], in float32; outside, the distance to the far side is zero."""
    sides = []
    for size, new_size in zip(head.shape, (height, width)):
        points = np.array(source_coordinates(size, new_size), np.float32)
        at = integers(new_size).astype(np.float32)
        right = np.minimum(np.searchsorted(points, at), size - 1)
        left = np.maximum(right - 1, 0)
        before = np.maximum(at - points[left], np.float32(0))
        after = np.maximum(points[right] - at, np.float32(0))
        alone = (before == 0) & (after == 0)
        before[alone] = after[alone] = 1
        sides.append((left, right, before, after))
    (up, down, above, below), (left, right, before, after) = sides
    total = np.float32(0)
    for rows, vertical in ((up, below), (down, above)):
        for columns, horizontal in ((left, after), (right, before)):
            total = total + head[np.ix_(rows, columns)] * np.outer(vertical, horizontal)
    return total / np.outer(above + below, before + after)


def line(kernel, stretch, dtype, tolerance, source, case):
    height, width, new_height, new_width, heads = case
    rows = table(height, width, heads)
    grids = [stretch(rows[:-3, h].reshape(height, width), new_height, new_width).reshape(-1)
             for h in range(heads)]
    values = np.concatenate([np.stack(grids, -1).astype(dtype), rows[-3:].astype(dtype)])
    assert values.dtype == dtype
    draw = random.Random(repr(case))
    corners = [(r, 0) for r in (0, new_width - 1, new_height * new_width - new_width,
                                new_height * new_width - 1, new_height * new_width + 2)]
    chosen = sorted({(draw.randrange(len(values)), draw.randrange(heads))
                     for _ in range(SAMPLES)}.union(corners))
    return {
        "id": f"beit_stretch.{kernel}.{height}x{width}.to.{new_height}x{new_width}",
        "encoding": "beit_stretch",
        "params": {"grid_height": height, "grid_width": width, "new_height": new_height,
                   "new_width": new_width, "heads": heads, "kernel": kernel,
                   "table": "((i * 2654435761 mod 2^32) >> 16) / 32768 - 1"},
        "dtype": {"float64": "f64", "float32": "f32"}[dtype],
        "shape": list(values.shape),
        "samples": [{"index": [int(r), int(h)], "hex": values[r, h].byteswap().tobytes().hex()}
                    for r, h in chosen],
        "tolerance": {"abs": tolerance},
        "source": source,
    }


def main():
    warnings.simplefilter("ignore")  # that interp2d is deprecated
    for case in SQUARE + OTHER:
        print(json.dumps(line("cubic_spline", spline, "float64", SPLINE_TOLERANCE,
                              "executed scipy 1.10.1 interp2d at unilm's coordinates", case),
                         separators=(",", ":")))
    for case in SQUARE + OTHER + LINEAR_ALONE:
        print(json.dumps(line("bilinear", linear, "float32", LINEAR_TOLERANCE,
                              "our numpy twin of timm's float32 interpolation", case),
                         separators=(",", ":")))


if __name__ == "__main__":
    main()
