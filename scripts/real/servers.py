"""Child processes and a socket server with threads. Prints the same in every interleaving; exits with 6."""

import multiprocessing
import socket
import socketserver
import subprocess
import sys
import threading


class Upper(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line.upper())


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = False


answers = {}


def client(name, address):
    with socket.create_connection(address) as connection, connection.makefile("rwb") as lines:
        for word in (b"one", b"two"):
            lines.write(name.encode() + b" " + word + b"\n")
            lines.flush()
            answers.setdefault(name, []).append(lines.readline())


with Server(("127.0.0.1", 0), Upper) as server:
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    clients = [threading.Thread(target=client, args=(name, server.server_address)) for name in ("ada", "bob")]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    server.shutdown()
    serving.join()
print(sorted(answers.items()))

print(subprocess.run(["sort", "-n"], input=b"3\n10\n2\n", stdout=subprocess.PIPE, check=True).stdout)
with subprocess.Popen(["sh", "-c", "read line; echo got $line; echo oops >&2; exit 3"], stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
    print(child.communicate(b"word\n"), child.returncode)
running = [subprocess.Popen(["sleep", "100"]) for _ in range(2)]
for child in running:
    child.terminate()
print([child.wait() for child in running])


def square(number, results):
    results.put((number, number * number))


fork = multiprocessing.get_context("fork")
results = fork.Queue()
processes = [fork.Process(target=square, args=(number, results)) for number in range(3)]
for process in processes:
    process.start()
print(sorted(results.get() for _ in processes))
for process in processes:
    process.join()
print([process.exitcode for process in processes])
sys.exit(6)
