"""The table of runs.jsonl: a row for each problem and peer, as Markdown."""

import json
import math
import sys
from collections import defaultdict

runs = defaultdict(dict)
for line in open(sys.argv[1]):
    one = json.loads(line)
    runs[one["problem"], one["peer"]][one["seed"]] = one  # the last of each seed

print("| problem | log Z | by | seeds | mean | claimed error | true error | evaluations | cost | seconds |")
print("|---|---|---|---|---|---|---|---|---|---|")
for (problem, peer), seeds in sorted(runs.items()):
    each = [one for one in seeds.values() if one["error"] is not None]
    if not each:
        print(f"| {problem} | | {peer} | 0 | | | | | | more than 300 |")
        continue

    def mean(name, digits, each=each):
        known = [one[name] for one in each if one[name] is not None]
        return f"{sum(known) / len(known):,.{digits}f}" if known else "-"

    truth = each[0]["value"] - each[0]["error"]
    error = math.sqrt(sum(one["error"] ** 2 for one in each) / len(each))
    cost = error**2 * sum(one["evaluations"] for one in each) / len(each)
    print(
        f"| {problem} | {truth:.4f} | {peer} | {len(each)} | {mean('value', 4)} | {mean('claimed', 4)} | {error:.4f} "
        f"| {mean('evaluations', 0)} | {cost:,.1f} | {mean('seconds', 1)} |"
    )
