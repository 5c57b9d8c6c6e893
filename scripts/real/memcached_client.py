"""A client of memcached: sets, gets, counts, and says what came back."""
import socket
import sys
import time

for _ in range(100):
    try:
        connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        break
    except ConnectionRefusedError:
        time.sleep(0.1)
lines = connection.makefile("rwb")


def ask(request, answers):
    lines.write(request)
    lines.flush()
    for _ in range(answers):
        print(lines.readline())


ask(b"set a 0 0 3\r\nfoo\r\n", 1)
ask(b"get a\r\n", 3)
ask(b"set n 0 0 1\r\n7\r\n", 1)
ask(b"incr n 5\r\n", 1)
connection.close()
