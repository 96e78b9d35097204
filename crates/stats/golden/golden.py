"""Golden values for the tests of wirecost-stats.

    pip install scipy && python3 golden.py > golden.json

SciPy gives the intervals; the order is worked out from RFC 8439's ChaCha, reduced to 8 rounds,
with nothing shared with the Rust code but the description in `order`'s documentation.
"""

import json
import math
import random
import struct

from scipy import stats


def chacha8(key):
    """The key stream's 64-bit little-endian words; counter and nonce start at 0."""
    def rotate(x, n):
        return ((x << n) | (x >> (32 - n))) & 0xFFFFFFFF

    def quarter(s, a, b, c, d):
        s[a] = (s[a] + s[b]) & 0xFFFFFFFF; s[d] = rotate(s[d] ^ s[a], 16)
        s[c] = (s[c] + s[d]) & 0xFFFFFFFF; s[b] = rotate(s[b] ^ s[c], 12)
        s[a] = (s[a] + s[b]) & 0xFFFFFFFF; s[d] = rotate(s[d] ^ s[a], 8)
        s[c] = (s[c] + s[d]) & 0xFFFFFFFF; s[b] = rotate(s[b] ^ s[c], 7)

    counter = 0
    while True:
        start = list(struct.unpack("<4I", b"expand 32-byte k")) + list(struct.unpack("<8I", key))
        start += [counter & 0xFFFFFFFF, counter >> 32, 0, 0]
        s = list(start)
        for _ in range(4):
            quarter(s, 0, 4, 8, 12); quarter(s, 1, 5, 9, 13)
            quarter(s, 2, 6, 10, 14); quarter(s, 3, 7, 11, 15)
            quarter(s, 0, 5, 10, 15); quarter(s, 1, 6, 11, 12)
            quarter(s, 2, 7, 8, 13); quarter(s, 3, 4, 9, 14)
        block = struct.pack("<16I", *((x + y) & 0xFFFFFFFF for x, y in zip(s, start)))
        yield from struct.unpack("<8Q", block)
        counter += 1


def order(cells, round_, seed):
    numbers = chacha8(struct.pack("<QI", seed, round_) + bytes(20))
    places = list(range(cells))
    for i in range(cells - 1, 0, -1):
        end = i + 1
        limit = (2**64 - 1) - (2**64 - 1) % end
        number = next(n for n in numbers if n < limit)
        places[i], places[number % end] = places[number % end], places[i]
    return places


def t_interval(values):
    n = len(values)
    interval = stats.t.interval(0.95, n - 1, loc=sum(values) / n, scale=stats.sem(values))
    return [float(end) for end in interval]


def ratio(from_, to):
    logs = [math.log(b / a) for a, b in zip(from_, to)]
    low, high = t_interval(logs)
    return {"from": from_, "to": to, "ratio": float(stats.gmean([b / a for a, b in zip(from_, to)])),
            "low": math.exp(low), "high": math.exp(high)}


def summary(values):
    low, high = t_interval(values)
    return {"values": values, "mean": float(stats.tmean(values)), "sd": float(stats.tstd(values)),
            "median": float(stats.scoreatpercentile(values, 50)), "low": low, "high": high}


rng = random.Random(1)
pairs = [([4.9, 5.1], [7.4, 7.6]), ([6.2, 6.4, 5.9], [5.0, 4.7, 5.1])]
for n in (4, 8, 12, 31, 200):
    pairs.append(([round(rng.uniform(4, 6), 4) for _ in range(n)],
                  [round(rng.uniform(5, 9), 4) for _ in range(n)]))

golden = {
    "orders": [{"cells": c, "round": r, "seed": s, "order": order(c, r, s)}
               for c, r, s in [(1, 0, 0), (8, 0, 0), (8, 1, 0), (8, 0, 1), (8, 7, 0xDEADBEEFCAFEF00D),
                               (40, 3, 42)]],
    "ratios": [ratio(a, b) for a, b in pairs],
    "summaries": [summary(b) for _, b in pairs],
}
lists = (f'"{name}": [\n' + ",\n".join(map(json.dumps, entries)) + "\n]" for name, entries in golden.items())
print("{" + ",\n".join(lists) + "}")
