"""The Python call of README.md, word for word; tests/e2e/readme_test.py runs it.

Needs the stubs and nothing of ours:
  protoc -I proto --python_out=stubs --grpc_out=stubs \
      --plugin=protoc-gen-grpc="$(command -v grpc_python_plugin)" proto/posenc/v1/*.proto
"""
import sys

import grpc
import numpy
from posenc.v1 import encoding_pb2, service_pb2_grpc, table_pb2

channel = grpc.insecure_channel(sys.argv[1])  # "127.0.0.1:50051"
stub = service_pb2_grpc.PositionalEncodingServiceStub(channel)

request = table_pb2.GetTableRequest(
    spec=encoding_pb2.EncodingSpec(
        rope=encoding_pb2.RopeSpec(head_dim=128, rope_theta=500000)),
    selection=table_pb2.Selection(position_range=table_pb2.PositionRange(end=4096)),
    format=table_pb2.TensorFormat(layout=table_pb2.LAYOUT_COS_AND_SIN_HALF))

data = bytearray()
for message in stub.GetTable(request):
    if message.HasField("header"):
        header = message.header
    data += message.data
tensors = {
    tensor.name: numpy.frombuffer(data, "<f4", tensor.bytes // 4, tensor.offset).reshape(tensor.shape)
    for tensor in header.tensors}

print("table  ", header.table_id)
print("content", message.content_hash)
for name, tensor in tensors.items():
    print(name, tensor.shape, tensor[1, :3])
