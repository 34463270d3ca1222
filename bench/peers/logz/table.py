"""The table of runs.jsonl: a row for each problem and peer."""

import json
import math
import sys
from collections import defaultdict

runs = defaultdict(dict)
for line in open(sys.argv[1]):
    one = json.loads(line)
    runs[one["problem"], one["peer"]][one["seed"]] = one  # the last of each seed

print(f"{'problem':12} {'peer':10} {'seeds':>5} {'RMSE':>8} {'claimed':>8} {'evaluations':>12} {'seconds':>8}")
for (problem, peer), seeds in sorted(runs.items()):
    each = list(seeds.values())

    def mean(name, each=each):
        return sum(one[name] for one in each) / len(each)

    error = math.sqrt(sum(one["error"] ** 2 for one in each) / len(each))
    print(
        f"{problem:12} {peer:10} {len(each):5} {error:8.4f} {mean('claimed'):8.4f} "
        f"{mean('evaluations'):12,.0f} {mean('seconds'):8.1f}"
    )
