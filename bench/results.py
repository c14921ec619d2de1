"""What ballast_bench wrote, for those who draw and print it."""
import json


def load(name):
    """The context of a run, and its rows; those whose op is missing are left out."""
    with open(name) as file:
        data = json.load(file)
    return data["context"], [row for row in data["rows"] if "missing" not in row]


def units_of(context):
    """How much of the device took part: threads of a CPU, compute units of a GPU."""
    if "compute_units" in context:
        return f'{context["compute_units"]} compute units'
    return f'{context["threads"]} threads'


def best_of(row):
    """The rival that is fastest beside ours, None where a row has none."""
    rivals = [r for r in row["rivals"] if r["name"] != "unfused" and r["ratio"] is not None]
    return min(rivals, key=lambda r: r["ratio"], default=None)


def unfused_of(row):
    """Our own kernels one by one, None where a row is a single op."""
    return next((r for r in row["rivals"] if r["name"] == "unfused"), None)
