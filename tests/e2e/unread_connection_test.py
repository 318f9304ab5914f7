"""A client that opens a stream and never reads, or hardly: the kernel's queue for it is
full, and what gRPC waits for there cannot be cancelled. Its place comes free all the same."""
import contextlib
import socket
import struct
import time
import unittest

import grpc
import programs
from http2_frames import WINDOW_UPDATE, frame, greeting, request
from posenc.v1 import encoding_pb2, service_pb2_grpc, table_pb2

LARGEST_WINDOW = 2**31 - 1
FIRST_WINDOW = 65535  # a connection's
SMALL = table_pb2.GetTableRequest(
    spec=encoding_pb2.EncodingSpec(alibi=encoding_pb2.AlibiSpec(num_heads=8)),
    selection=table_pb2.Selection(
        attention_grid=table_pb2.AttentionGrid(query_length=4, key_length=4)))
LARGE = table_pb2.GetTableRequest(
    spec=encoding_pb2.EncodingSpec(alibi=encoding_pb2.AlibiSpec(num_heads=8)),
    selection=table_pb2.Selection(
        attention_grid=table_pb2.AttentionGrid(query_length=4096, key_length=4096)))


@contextlib.contextmanager
def unread_stream(connection):
    with connection:
        connection.sendall(
            greeting(LARGEST_WINDOW) +
            frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", LARGEST_WINDOW - FIRST_WINDOW)) +
            request(1, "/posenc.v1.PositionalEncodingService/GetTable", LARGE.SerializeToString()))
        yield


def code_of_a_call(address):
    """None when the table came."""
    with grpc.insecure_channel(address) as channel:
        try:
            list(service_pb2_grpc.PositionalEncodingServiceStub(channel).GetTable(SMALL))
            return None
        except grpc.RpcError as error:
            return error.code()


def wait_for_code(address, code):
    for _ in range(600):
        if code_of_a_call(address) == code:
            return True
        time.sleep(0.1)
    return False


def unix_connection(address):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address.removeprefix("unix:"))
    return connection


def ends_while_it_trickles(connection):
    """At most 200 KiB/s are read."""
    for _ in range(300):
        try:
            if not connection.recv(20 << 10):
                return True
        except ConnectionResetError:
            return True
        time.sleep(0.1)
    return False


class UnreadConnectionTest(unittest.TestCase):

    def check(self, connect):
        with programs.server("--stall-timeout", "2", "--max-concurrent-streams", "1") as addresses:
            tcp, unix = addresses
            with unread_stream(connect(tcp, unix)):
                self.assertTrue(wait_for_code(tcp, grpc.StatusCode.UNAVAILABLE), "no place taken")
                self.assertTrue(wait_for_code(tcp, None), "the place did not come free")

    def test_of_a_unix_socket_is_ended(self):
        self.check(lambda _, unix: unix_connection(unix))

    def test_over_tcp_is_ended(self):
        def connect(tcp, _):
            host, port = tcp.rsplit(":", 1)
            return socket.create_connection((host, int(port)))

        self.check(connect)

    def test_a_trickle_over_tcp_is_ended(self):
        """64 KiB a timeout were enough once: a place was had for 2 KiB/s."""
        with programs.server("--stall-timeout", "1", "--chunk-bytes", "3MiB") as addresses:
            host, port = addresses[0].rsplit(":", 1)
            with socket.socket() as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
                connection.connect((host, int(port)))
                with unread_stream(connection):
                    self.assertTrue(ends_while_it_trickles(connection))

    def test_a_trickle_from_a_unix_socket_is_ended(self):
        with programs.server("--stall-timeout", "1") as addresses:
            with unix_connection(addresses[1]) as connection, unread_stream(connection):
                self.assertTrue(ends_while_it_trickles(connection))

    def test_bursts_from_a_unix_socket_are_no_trickle(self):
        """Between them its queue is always as full as the last time that somebody looked."""
        with programs.server("--stall-timeout", "3") as addresses:
            with unix_connection(addresses[1]) as connection, unread_stream(connection):
                for _ in range(12):
                    self.assertEqual(len(connection.recv(3 << 20, socket.MSG_WAITALL)), 3 << 20)
                    time.sleep(0.9)


if __name__ == "__main__":
    unittest.main()
