"""A client whose HTTP/2 window is closed takes no answer: each of its calls is cut off
after the stall timeout, small ones too. Frames are written by hand: gRPC's own clients
cannot close theirs."""
import socket
import struct
import unittest

import programs

DATA, HEADERS, RST_STREAM, SETTINGS = 0, 1, 3, 4
END_STREAM, END_HEADERS, ACK = 1, 4, 1
INITIAL_WINDOW_SIZE = 4
POSENC = "/posenc.v1.PositionalEncodingService/"
# spec { alibi { num_heads: 8 } } and nothing.
CALLS = {POSENC + "DescribeTable": b"\x0a\x04\x1a\x02\x08\x08", POSENC + "GetServerInfo": b"",
         "/grpc.health.v1.Health/Check": b"", "/grpc.health.v1.Health/Watch": b""}


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(
        ">I", stream) + payload


def header(name, value):
    """A literal that no table keeps (RFC 7541, section 6.2.2)."""
    return bytes([0, len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def request(stream, path, message):
    block = b"".join(header(*pair) for pair in [
        (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "test"),
        ("te", "trailers"), ("content-type", "application/grpc")])
    body = b"\0" + struct.pack(">I", len(message)) + message
    return frame(HEADERS, END_HEADERS, stream, block) + frame(DATA, END_STREAM, stream, body)


def frames(connection):
    """(type, flags, stream) of what the server sends, until it closes."""
    while True:
        head = connection.recv(9, socket.MSG_WAITALL)
        if len(head) < 9:
            return
        connection.recv(int.from_bytes(head[:3], "big"), socket.MSG_WAITALL)
        yield head[3], head[4], int.from_bytes(head[5:], "big")


class ClosedWindowTest(unittest.TestCase):

    def test_every_call_is_cut_off(self):
        with programs.server("--stall-timeout", "0.3") as (tcp, _):
            host, port = tcp.rsplit(":", 1)
            with socket.create_connection((host, int(port)), timeout=60) as connection:
                connection.sendall(
                    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
                    frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, 0)) +
                    b"".join(request(2 * i + 1, path, message)
                             for i, (path, message) in enumerate(CALLS.items())))
                waiting = {2 * i + 1 for i in range(len(CALLS))}
                for kind, flags, stream in frames(connection):
                    if kind == SETTINGS and not flags & ACK:
                        connection.sendall(frame(SETTINGS, ACK, 0, b""))
                    self.assertFalse(kind == DATA and stream in waiting)
                    if kind == RST_STREAM or flags & END_STREAM and kind == HEADERS:
                        waiting.discard(stream)
                    if not waiting:
                        break
        self.assertEqual(waiting, set())


if __name__ == "__main__":
    unittest.main()
