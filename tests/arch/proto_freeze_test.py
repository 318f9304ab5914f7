"""Field numbers are for ever: compares the .proto files with a frozen descriptor set.

  proto_freeze_test.py PROTOC PROTO_DIR FROZEN           the test
  proto_freeze_test.py PROTOC PROTO_DIR FROZEN --freeze  adds what is new to FROZEN

What is frozen may not change name, number, type, label, oneof or meaning of an
enum value; what is new must be frozen in the same change.
"""
import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2


def compile_protos(protoc, folder):
    files = sorted(str(p.relative_to(folder)) for p in pathlib.Path(folder).rglob("*.proto"))
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run([protoc, f"-I{folder}", f"--descriptor_set_out={out.name}", *files],
                       check=True)
        return descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(out.name).read_bytes())


def facts(descriptor_set):
    """What clients depend on, as {name: value}."""
    known = {}

    def message(prefix, m):
        name = f"{prefix}.{m.name}"
        for f in m.field:
            oneof = m.oneof_decl[f.oneof_index].name if f.HasField("oneof_index") else ""
            known[f"{name}.{f.name}"] = (f"{f.number} {f.Type.Name(f.type)} {f.type_name} "
                                         f"{f.Label.Name(f.label)} {oneof}")
        for e in m.enum_type:
            enum(name, e)
        for nested in m.nested_type:
            message(name, nested)

    def enum(prefix, e):
        for v in e.value:
            known[f"{prefix}.{e.name}.{v.name}"] = str(v.number)

    for file in descriptor_set.file:
        for m in file.message_type:
            message(file.package, m)
        for e in file.enum_type:
            enum(file.package, e)
        for s in file.service:
            for r in s.method:
                known[f"{file.package}.{s.name}.{r.name}"] = (
                    f"{r.input_type} {r.output_type} "
                    f"{r.client_streaming} {r.server_streaming}")
    return known


def main():
    protoc, folder, frozen_path = sys.argv[1:4]
    current_set = compile_protos(protoc, folder)
    if sys.argv[4:] == ["--freeze"]:
        pathlib.Path(frozen_path).write_bytes(current_set.SerializeToString(deterministic=True))
        return 0
    current = facts(current_set)
    frozen = facts(descriptor_pb2.FileDescriptorSet.FromString(
        pathlib.Path(frozen_path).read_bytes()))
    assert len(frozen) > 100, "the frozen set is empty"
    problems = [f"{name}: was {value}, is {current.get(name, 'gone')}"
                for name, value in frozen.items() if current.get(name) != value]
    problems += [f"{name}: new, run this with --freeze" for name in current if name not in frozen]
    print("\n".join(problems) or f"{len(frozen)} names as they were")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
