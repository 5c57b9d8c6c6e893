"""Asks a name server on this machine for the address of a name, by UDP and by TCP: NAME PORT. Prints the answers as they come."""
import socket
import sys

name, port = sys.argv[1], int(sys.argv[2])
labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + labels + b"\0\0\1\0\1"
for kind in socket.SOCK_DGRAM, socket.SOCK_STREAM:
    with socket.socket(socket.AF_INET, kind) as s:
        s.settimeout(5)
        s.connect(("127.0.0.1", port))
        if kind == socket.SOCK_DGRAM:
            s.send(question)
            answer = s.recv(512)
        else:
            s.send(len(question).to_bytes(2, "big") + question)
            f = s.makefile("rb")
            answer = f.read(int.from_bytes(f.read(2), "big"))
    print(answer.hex())
