"""The Python call of README.md for a model's table, word for word; readme_test.py runs it.

Needs the stubs (readme_example.py says how), and grpcio, torch and xxhash.
"""
import math
import pathlib
import sys

import grpc
import torch
import xxhash
from posenc.v1 import model_config_pb2, service_pb2_grpc, table_pb2

DTYPES = {table_pb2.DTYPE_F32: torch.float32, table_pb2.DTYPE_F64: torch.float64,
          table_pb2.DTYPE_F16: torch.float16, table_pb2.DTYPE_BF16: torch.bfloat16,
          table_pb2.DTYPE_I32: torch.int32, table_pb2.DTYPE_BOOL: torch.bool}

stub = service_pb2_grpc.PositionalEncodingServiceStub(grpc.insecure_channel(sys.argv[1]))
request = table_pb2.GetTableRequest(
    model=model_config_pb2.ModelSource(config_json=pathlib.Path(sys.argv[2]).read_bytes()),
    format=table_pb2.TensorFormat(profile="vllm"))

data = bytearray()
for message in stub.GetTable(request):
    if message.HasField("header"):
        header = message.header
    data += message.data
if xxhash.xxh3_128_hexdigest(data) != message.content_hash:  # the last message has it
    raise IOError("the table was damaged or cut")
tensors = {
    tensor.name: torch.frombuffer(data, dtype=DTYPES[tensor.dtype], count=math.prod(tensor.shape),
                                  offset=tensor.offset).reshape(tuple(tensor.shape))
    for tensor in header.tensors}

for name, tensor in tensors.items():
    print(name, tuple(tensor.shape), tensor[1, :3])
