"""Python's xxhash, where it is not installed: what an example of README.md calls, by libxxhash."""
import ctypes
import ctypes.util


class _Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


_LIBRARY = ctypes.CDLL(ctypes.util.find_library("xxhash"))
_LIBRARY.XXH3_128bits.restype = _Hash128
_LIBRARY.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def xxh3_128_hexdigest(data):
    value = _LIBRARY.XXH3_128bits(bytes(data), len(data))
    return f"{value.high:016x}{value.low:016x}"
