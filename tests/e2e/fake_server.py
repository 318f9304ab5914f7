"""A server that breaks its promises, one way at a time.

It takes the first answers of a real table from the stubs' messages and bends them.
"""
import concurrent.futures
import contextlib
import tempfile
import time

import grpc
from posenc.v1 import service_pb2_grpc, table_pb2

WRONG_CHECKSUM, SHORT, WRONG_OFFSET, INTERNAL, STALL = range(5)
EMPTY_XXH3 = 0x2d06800538d394c2  # XXH3-64 of no bytes (xxHash's own test vector)


class Service(service_pb2_grpc.PositionalEncodingServiceServicer):
    """Promises one tensor of 1000 x 128 floats."""

    def __init__(self, fault):
        self.fault = fault

    def GetTable(self, request, context):
        header = table_pb2.TableHeader(table_id="0" * 32, total_bytes=512000)
        header.tensors.add(name="cos_sin_cache", dtype=table_pb2.DTYPE_F32, shape=[1000, 128],
                           bytes=512000)
        yield table_pb2.GetTableResponse(header=header, checksum=EMPTY_XXH3)
        if self.fault == INTERNAL:
            context.abort(grpc.StatusCode.INTERNAL, "out of order")
        if self.fault == WRONG_CHECKSUM:
            yield table_pb2.GetTableResponse(checksum=1, data=b"\0" * 1000)
        if self.fault == WRONG_OFFSET:
            yield table_pb2.GetTableResponse(offset=1000, data=b"\0" * 1000)
        if self.fault == STALL:
            deadline = time.monotonic() + 60
            while context.is_active() and time.monotonic() < deadline:
                time.sleep(0.01)


@contextlib.contextmanager
def running(fault):
    """Yields the address of a server with this fault."""
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=2))
    service_pb2_grpc.add_PositionalEncodingServiceServicer_to_server(Service(fault), server)
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{folder}/socket"
        server.add_insecure_port(address)
        server.start()
        try:
            yield address
        finally:
            server.stop(grace=None).wait()
