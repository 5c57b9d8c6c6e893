import collections, hashlib, json, re, threading, zlib
from fractions import Fraction

def work(name, out):
    words = collections.Counter(re.findall(r"[a-z]+", "lock and wait, wait and see; see the lock " * 50))
    tree = {}
    for n in range(400):
        tree.setdefault(n * 7919 % 101, []).append(str(Fraction(n, n + 3)))
    try:
        [][name]
    except (IndexError, TypeError) as error:
        kind = type(error).__name__
    text = json.dumps([sorted(words.items()), sorted(tree.items()), kind, [hex(3 ** n) for n in range(1, 200, 17)]])
    packed = zlib.compress(text.encode(), 9)
    assert zlib.decompress(packed).decode() == text
    out.append((name, hashlib.sha256(text.encode()).hexdigest(), zlib.crc32(text.encode())))

results = []
threads = [threading.Thread(target=work, args=(name, results)) for name in (1, 2)]
for thread in threads:
    thread.start()
work(0, results)
for thread in threads:
    thread.join()
print(sorted(results))
