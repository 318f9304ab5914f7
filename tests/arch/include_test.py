"""Dependencies point one way: reads the include lines of every source file.

Each folder may include only the folders and headers named here (design: lib/DESIGN.md, "Tree").
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])

PROTO = {"posenc/v1"}
ALLOWED = {
    "lib/base": {"lib/base"},
    "lib/hash": {"lib/hash"},
    "lib/memory": {"lib/memory"},
    "lib/numeric": {"lib/base", "lib/numeric"},
    "lib/families": {"lib/base", "lib/memory", "lib/numeric", "lib/families"},
    "lib/model_config": {"lib/base", "lib/model_config"},
    "lib/cache": {"lib/hash", "lib/cache"},
    "lib/engine": {"lib/base", "lib/hash", "lib/cache", "lib/families", "lib/model_config", "lib/engine"},
    "server": {"lib/base", "lib/hash", "lib/memory", "lib/cache", "lib/engine", "server"},
    # Public headers are "posenc/...", without v1.
    "client": {"posenc", "client", "lib/hash", "lib/memory", "lib/base/file_descriptor.h"},
    "client/embedded": {"posenc", "client", "client/embedded", "lib/engine"},
    "client/cli": {"posenc", "client", "client/embedded", "client/cli", "lib/numeric",
                   "lib/base/edit_distance.h", "lib/model_config/fact_place.h",
                   "lib/model_config/findings.h", "lib/model_config/profile.h"},
}
NO_PROTO = {"lib/hash", "lib/memory", "lib/numeric", "lib/cache"}
NO_GRPC = {"lib/base", "lib/hash", "lib/memory", "lib/numeric", "lib/families",
           "lib/model_config", "lib/cache", "lib/engine", "client/embedded"}
NO_LOGGING = NO_GRPC - {"client/embedded"}

INCLUDE = re.compile(r'^\s*#include\s+["<]([^">]+)[">]', re.MULTILINE)


def folder_of(path):
    """The longest key of ALLOWED that holds `path`."""
    parts = path.split("/")
    for length in range(len(parts), 0, -1):
        key = "/".join(parts[:length])
        if key in ALLOWED:
            return key
    return None


def included_folder(include):
    if include.startswith("posenc/v1/"):
        return "posenc/v1"
    if include.startswith("posenc/"):
        return "posenc"
    return folder_of(str(pathlib.PurePosixPath(include).parent))


def check(file, text):
    folder = folder_of(str(file.parent))
    for include in INCLUDE.findall(text):
        to = included_folder(include)
        if to == "posenc/v1" and folder in NO_PROTO:
            yield f"{file}: {folder} knows no protobuf messages, includes {include}"
        if to is not None and to not in PROTO and not {to, include} & ALLOWED[folder]:
            yield f"{file}: {folder} must not include {include}"
        if re.match(r"grpc(pp|\+\+)?/", include) and folder in NO_GRPC:
            yield f"{file}: {folder} knows no gRPC, includes {include}"
        if include.startswith("spdlog/") and folder in NO_LOGGING:
            yield f"{file}: {folder} logs nothing, includes {include}"
        if re.match(r"absl/synchronization/", include) and folder.startswith("lib/"):
            yield f"{file}: lib uses std::mutex (TSan misreads Debian's absl::Mutex)"


def main():
    files = [f for top in ("lib", "server", "client") for f in (ROOT / top).rglob("*")
             if f.suffix in (".h", ".cc")]
    assert len(files) > 10, f"found no sources below {ROOT}"
    problems = [p for f in sorted(files) for p in check(f.relative_to(ROOT), f.read_text())]
    print("\n".join(problems) or f"{len(files)} files, dependencies point one way")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
