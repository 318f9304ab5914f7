"""A client in another language, from generated stubs alone: the tool's bytes and hashes.

What a program does that has no library of ours: README.md, "From Python".
"""
import concurrent.futures
import struct
import unittest

import grpc
import programs
from google.protobuf import any_pb2
from posenc.v1 import (encoding_pb2, error_details_pb2, float_table_pb2, learned_pb2, service_pb2,
                       service_pb2_grpc, table_pb2)
from programs import FAMILIES, run, summary

REQUESTS = {
    "rope": table_pb2.GetTableRequest(
        spec=encoding_pb2.EncodingSpec(rope=encoding_pb2.RopeSpec(head_dim=128)),
        selection=table_pb2.Selection(
            position_range=table_pb2.PositionRange(begin=0, end=1000))),
    "alibi": table_pb2.GetTableRequest(
        spec=encoding_pb2.EncodingSpec(alibi=encoding_pb2.AlibiSpec(num_heads=12)),
        selection=table_pb2.Selection(
            attention_grid=table_pb2.AttentionGrid(query_length=50, key_length=70))),
    "t5": table_pb2.GetTableRequest(
        spec=encoding_pb2.EncodingSpec(t5=encoding_pb2.T5BiasSpec()),
        selection=table_pb2.Selection(
            attention_grid=table_pb2.AttentionGrid(query_length=50, key_length=70))),
    "sinusoidal": table_pb2.GetTableRequest(
        spec=encoding_pb2.EncodingSpec(sinusoidal=encoding_pb2.SinusoidalSpec(d_model=64)),
        selection=table_pb2.Selection(position_ids=table_pb2.PositionIds(ids=[5, 0, 77]))),
}


class PythonClientTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        context = programs.server()
        cls.tcp, cls.unix = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)
        cls.channel = grpc.insecure_channel(cls.tcp)
        cls.addClassCleanup(cls.channel.close)
        cls.stub = service_pb2_grpc.PositionalEncodingServiceStub(cls.channel)

    def read(self, request):
        """(header, bytes, content hash) of a table; offsets are contiguous."""
        header, data, content_hash = None, bytearray(), ""
        for message in self.stub.GetTable(request):
            if header is None:
                header = message.header
            self.assertEqual(message.offset, request.read_offset + len(data))
            data += message.data
            content_hash = message.content_hash or content_hash
        return header, bytes(data), content_hash

    def test_tables_are_the_tools(self):
        for name, arguments in FAMILIES.items():
            header, data, content_hash = self.read(REQUESTS[name])
            tool = run("table", *arguments, "-o", "-", "--server", self.unix)
            said = summary(tool.stderr)
            self.assertEqual(data, tool.stdout, name)
            self.assertEqual((header.table_id, content_hash),
                             (said["table_id"], said["content_hash"]), name)
            self.assertEqual(header.total_bytes, len(data))

    def test_a_read_resumes_at_an_offset(self):
        header, whole, _ = self.read(REQUESTS["rope"])
        request = table_pb2.GetTableRequest()
        request.CopyFrom(REQUESTS["rope"])
        request.if_table_id = header.table_id
        for offset in (1, 4096, len(whole) - 1, len(whole)):
            request.read_offset = offset
            again, rest, content_hash = self.read(request)
            self.assertEqual((again.table_id, rest, content_hash),
                             (header.table_id, whole[offset:], ""))
        request.if_table_id = "f" * 32
        with self.assertRaises(grpc.RpcError) as caught:
            self.read(request)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)

    def test_a_table_larger_than_a_message_is_uploaded(self):
        """Resampled to its own grid, a table comes back as it was sent."""
        side, width, piece = 256, 32, 1 << 20  # 8 MiB
        numbers = struct.pack(f"<{side * side * width}f", *range(side * side * width))
        spec = encoding_pb2.EncodingSpec(table_resample=learned_pb2.TableResampleSpec(
            table=float_table_pb2.FloatTable(shape=[side * side, width])))
        grid = table_pb2.PatchGrid(height=side, width=side)

        def messages():
            yield table_pb2.GetTableFromUploadRequest(request=table_pb2.GetTableRequest(
                spec=spec, selection=table_pb2.Selection(patch_grid=grid)))
            for offset in range(0, len(numbers), piece):
                yield table_pb2.GetTableFromUploadRequest(
                    offset=offset, data=numbers[offset:offset + piece])

        answers = list(self.stub.GetTableFromUpload(messages()))
        self.assertEqual(b"".join(answer.data for answer in answers), numbers)
        echoed = answers[0].header.spec.table_resample.table
        self.assertEqual((echoed.f32, echoed.content_hash), (b"", answers[-1].content_hash))

    def test_a_refusal_carries_its_details(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.stub.DescribeTable(table_pb2.DescribeTableRequest(
                spec=encoding_pb2.EncodingSpec(rope=encoding_pb2.RopeSpec(rotary_dim=65))))
        error = caught.exception
        self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(error.details(), "rope.rotary_dim: must be even, got 65")
        trailer = dict(error.trailing_metadata())["grpc-status-details-bin"]
        (detail,) = error_details_pb2.RpcStatus.FromString(trailer).details
        self.assertIsInstance(detail, any_pb2.Any)
        self.assertEqual(detail.type_url, "type.googleapis.com/google.rpc.BadRequest")
        (violation,) = error_details_pb2.BadRequest.FromString(detail.value).field_violations
        self.assertEqual(violation.field, "rope.rotary_dim")

    def test_the_server_says_what_it_is(self):
        info = self.stub.GetServerInfo(service_pb2.GetServerInfoRequest())
        self.assertTrue({"rope", "alibi", "t5", "sinusoidal"} <= {e.family for e in info.encodings})

    def test_threads_share_a_channel(self):
        expected = self.read(REQUESTS["alibi"])
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for got in pool.map(lambda _: self.read(REQUESTS["alibi"]), range(16)):
                self.assertEqual(got, expected)


if __name__ == "__main__":
    unittest.main()
