# SPDX-License-Identifier: GPL-3.0-or-later
"""objects.py N: what scripts do, N times: strings, tuples, dictionaries, a sort, JSON."""

import json
import sys


def make_record(number):
    return {"id": number, "name": f"record {number}", "tags": [str(number % k) for k in (2, 3, 7)],
            "position": (number * 0.5, number * 0.25)}


def main():
    kept = {}
    for start in range(0, int(sys.argv[1]), 100):
        records = [make_record(number) for number in range(start, start + 100)]
        records.sort(key=lambda record: record["name"][::-1])
        kept[start % 1000] = json.loads(json.dumps(records))
    print(sum(len(records) for records in kept.values()))


main()
