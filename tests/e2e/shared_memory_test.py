"""Tables through shared memory: with the tool, and by hand_over.proto alone."""
import fcntl
import mmap
import os
import socket
import struct
import unittest

from posenc.v1 import hand_over_pb2, table_pb2

from programs import DONE, FAMILIES, REFUSED, ROPE, run, server, summary, table_bytes

F_GET_SEALS = 1034
ALL_SEALS = 0xF  # seal, shrink, grow, write


def receive(connection, size):
    """Exactly `size` bytes and the descriptors that came with them."""
    data, descriptors = b"", []
    while len(data) < size:
        part, fds, _, _ = socket.recv_fds(connection, size - len(data), 4)
        assert part, "the server hung up"
        data += part
        descriptors += fds
    return data, descriptors


def hand_over(path, request):
    """The reply and its descriptors, as the comment of hand_over.proto says."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path + ".memfd")
        message = request.SerializeToString()
        connection.sendall(struct.pack("<I", len(message)) + message)
        head, descriptors = receive(connection, 4)
        body, more = receive(connection, struct.unpack("<I", head)[0])
    return hand_over_pb2.HandOverReply.FromString(body), descriptors + more


class Sharing(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        context = server("--share-memory")
        cls.tcp, cls.unix = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)

    def transport(self, *flags, env=None):
        result = run("table", *ROPE, "-o", "-", "--share-memory", *flags, env=env)
        self.assertEqual(result.returncode, DONE, result.stderr)
        return summary(result.stderr)["transport"]

    def test_the_tool_takes_it_and_says_so(self):
        self.assertEqual(self.transport("--server", self.unix), "shared memory")

    def test_the_bytes_are_the_embedded_librarys(self):
        for arguments in FAMILIES.values():
            shared = table_bytes(*arguments, "--server", self.unix, "--share-memory")
            self.assertEqual(shared, table_bytes(*arguments))

    def test_what_cannot_share_is_streamed_and_the_tool_says_why(self):
        self.assertRegex(self.transport("--server", self.tcp), r"^stream \(.*not share memory\)$")
        self.assertRegex(self.transport(), r"^stream \(.*not share memory\)$")
        with server() as (_, unix):
            self.assertRegex(self.transport("--server", unix), r"^stream \(.*No such file")

    def test_without_the_flag_nothing_is_said(self):
        result = run("table", *ROPE, "-o", "-", "--server", self.unix)
        self.assertNotIn("transport", summary(result.stderr))

    def test_a_refusal_is_the_embedded_librarys(self):
        arguments = ("--spec", '{"rope": {"head_dim": 7}}', "--positions", "0:9", "-o", "-")
        shared = run("table", *arguments, "--server", self.unix, "--share-memory")
        self.assertEqual(shared.returncode, REFUSED)
        self.assertEqual(shared.stderr, run("table", *arguments).stderr)

    def test_any_language_can_map_it(self):
        request = table_pb2.GetTableRequest()
        request.spec.rope.head_dim = 128
        request.selection.position_range.end = 1000
        reply, descriptors = hand_over(self.unix.removeprefix("unix:"), request)
        self.assertEqual(len(descriptors), 1)
        size = reply.header.total_bytes
        self.assertEqual(os.fstat(descriptors[0]).st_size, size)
        self.assertEqual(fcntl.fcntl(descriptors[0], F_GET_SEALS) & ALL_SEALS, ALL_SEALS)
        with mmap.mmap(descriptors[0], size, mmap.MAP_SHARED, mmap.PROT_READ) as table:
            self.assertEqual(table[:], table_bytes(*ROPE))
        os.close(descriptors[0])


if __name__ == "__main__":
    unittest.main()
