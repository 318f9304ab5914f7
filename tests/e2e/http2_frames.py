"""HTTP/2 by hand, for peers that gRPC's own clients cannot be (RFC 9113)."""
import socket
import struct

DATA, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE = 0, 1, 3, 4, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
INITIAL_WINDOW_SIZE = 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


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


def greeting(window):
    """What a client begins with; a stream may send it `window` bytes."""
    return PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, window))


def frames(connection):
    """(type, flags, stream) of what the server sends, until it closes."""
    while True:
        head = connection.recv(9, socket.MSG_WAITALL)
        if len(head) < 9:
            return
        connection.recv(int.from_bytes(head[:3], "big"), socket.MSG_WAITALL)
        yield head[3], head[4], int.from_bytes(head[5:], "big")
