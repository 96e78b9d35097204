"""Golden values of the methods, by SciPy and the diptest package.

    pip install scipy diptest && python3 methods.py > methods.json
"""

import itertools
import json
import math
import random

import diptest
import numpy as np
from scipy import stats

rng = random.Random(2)


def numbers(n, low=-1.0, high=1.0):
    return [round(rng.uniform(low, high), 4) for _ in range(n)]


def t_quantiles():
    """Far tails too: the boundary of an early look lies there."""
    return [{"tail": tail, "freedom": freedom, "t": float(stats.t.isf(tail, freedom))}
            for tail in (0.025, 0.0215, 1e-3, 1e-6, 1e-9, 1e-12)
            for freedom in (1, 2, 3, 5, 8, 20, 59, 500)]


def mann_whitney(from_, to):
    p = stats.mannwhitneyu(from_, to, method="exact").pvalue
    return {"from": from_, "to": to, "p": float(p)}


def mann_whitney_ties(from_, to):
    """The permutation distribution of the midranks, by going through every choice."""
    ranks = stats.rankdata(from_ + to)
    seen = sum(ranks[:len(from_)])
    sums = [sum(c) for c in itertools.combinations(ranks, len(from_))]
    low = sum(s <= seen + 1e-9 for s in sums) / len(sums)
    high = sum(s >= seen - 1e-9 for s in sums) / len(sums)
    return {"from": from_, "to": to, "p": min(1.0, 2 * min(low, high))}


def welch(from_, to):
    test = stats.ttest_ind(np.log(to), np.log(from_), equal_var=False)
    ends = test.confidence_interval(0.95)
    return {"from": from_, "to": to, "p": float(test.pvalue), "freedom": float(test.df),
            "low": math.exp(ends.low), "high": math.exp(ends.high)}


def trend(x, y, method):
    test = stats.kendalltau(x, y, method=method)
    return {"x": x, "y": y, "tau": float(test.statistic), "p": float(test.pvalue),
            "slope": float(stats.theilslopes(y, x).slope)}


def bootstrap(values):
    """Studentised, with enough draws that they do not matter. SciPy has no such method: by its definition."""
    x = np.array(values)
    drawn = np.random.default_rng(1).choice(x, (400_000, len(x)))
    sd = drawn.std(axis=1, ddof=1)
    t = (drawn.mean(axis=1) - x.mean())[sd > 0] / sd[sd > 0]
    high, low = np.quantile(t, [0.025, 0.975])
    return {"values": values, "low": float(x.mean() - low * x.std(ddof=1)),
            "high": float(x.mean() - high * x.std(ddof=1))}


def dip(values):
    return {"values": values, "dip": float(diptest.dipstat(np.array(values)))}


def garwood(count):
    return {"count": count, "low": float(stats.chi2.ppf(0.025, 2 * count) / 2) if count else 0.0,
            "high": float(stats.chi2.ppf(0.975, 2 * count + 2) / 2)}


def modified_z(values):
    median = np.median(values)
    mad = stats.median_abs_deviation(values)
    return {"values": values, "z": [float(0.6745 * (v - median) / mad) for v in values]}


skewed = [[round(math.exp(rng.gauss(0, s)), 4) for _ in range(n)] for n, s in ((10, 0.5), (15, 1.0), (40, 0.8))]
two = [round(rng.gauss(0, 1) + (6 if i % 3 else 0), 3) for i in range(30)]
grid = [[float(rng.randrange(6)) for _ in range(n)] for n in (8, 15, 30)]
golden = {
    "t_quantiles": t_quantiles(),
    "mann_whitney": [mann_whitney([1.0, 2, 3, 4, 5], [6.0, 7, 8, 9, 10])]
    + [mann_whitney(numbers(a), numbers(b, -0.6, 1.4)) for a, b in ((4, 4), (6, 9), (12, 12), (20, 31))],
    "mann_whitney_ties": [mann_whitney_ties([float(rng.randrange(5)) for _ in range(a)],
                                            [float(rng.randrange(2, 7)) for _ in range(b)])
                          for a, b in ((5, 6), (8, 8))],
    "welch": [welch(numbers(a, 4, 6), numbers(b, 5, 9)) for a, b in ((2, 3), (6, 6), (10, 25))],
    "trends": [trend(list(map(float, range(n))), numbers(n), "exact") for n in (4, 7, 12, 40)],
    "tied_trends": [trend([float(rng.randrange(4)) for _ in range(n)], [float(rng.randrange(5)) for _ in range(n)],
                          "asymptotic") for n in (12, 30)],
    "bootstraps": [bootstrap(values) for values in skewed + [numbers(20)]],
    "dips": [dip(values) for n in (4, 5, 8, 10, 20, 50, 120) for values in (numbers(n), numbers(n))]
    + [dip(two)] + [dip(values) for values in grid + skewed],
    "garwood": [garwood(count) for count in (0, 1, 5, 40, 1000)],
    "modified_z": [modified_z(numbers(9) + [5.0]), modified_z(skewed[1])],
}
lists = (f'"{name}": [\n' + ",\n".join(map(json.dumps, entries)) + "\n]" for name, entries in golden.items())
print("{" + ",\n".join(lists) + "}")
