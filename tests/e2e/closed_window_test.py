"""A client whose HTTP/2 window is closed takes no answer: each of its calls is cut off
after the stall timeout, small ones too. Frames are written by hand: gRPC's own clients
cannot close theirs."""
import socket
import unittest

import programs
from http2_frames import (ACK, DATA, END_STREAM, HEADERS, RST_STREAM, SETTINGS, frame, frames,
                          greeting, request)

POSENC = "/posenc.v1.PositionalEncodingService/"
# spec { alibi { num_heads: 8 } } and nothing.
CALLS = {POSENC + "DescribeTable": b"\x0a\x04\x1a\x02\x08\x08", POSENC + "GetServerInfo": b"",
         "/grpc.health.v1.Health/Check": b"", "/grpc.health.v1.Health/Watch": b""}


class ClosedWindowTest(unittest.TestCase):

    def test_every_call_is_cut_off(self):
        with programs.server("--stall-timeout", "0.3") as (tcp, _):
            host, port = tcp.rsplit(":", 1)
            with socket.create_connection((host, int(port)), timeout=60) as connection:
                connection.sendall(
                    greeting(window=0) +
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
