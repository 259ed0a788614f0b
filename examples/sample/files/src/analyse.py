"""Reads the measurements and writes the mean of each station and day."""
import csv
import statistics
from collections import defaultdict

LIMIT = 15.0  # µg/m³, daily mean, World Health Organization 2021


def daily_means(path):
    values = defaultdict(list)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            values[row["station"], row["time"][:10]].append(float(row["pm25"]))
    return {key: statistics.mean(list_) for key, list_ in values.items()}


if __name__ == "__main__":
    for (station, day), mean in sorted(daily_means("data/measurements.csv").items()):
        mark = "above" if mean > LIMIT else "ok"
        print(f"{day}  {station:12} {mean:5.1f}  {mark}")
