#!/usr/bin/env python3
"""JAX on its default device: a jitted function of the case over arrays that stay there.

Full f32 (no TF32). A run is dispatched as often as it is asked for, and the last result waited for.
A chain is jitted as a whole, which is how XLA fuses it.
"""
import os

# Ours lives on the same device.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

try:
    import jax
except ImportError as error:
    raise SystemExit(f"no JAX here: {error}")

import worker
from jax_ops import OPS

jax.config.update("jax_default_matmul_precision", "highest")


def applied(node, inputs):
    attrs = {name: tuple(value) if isinstance(value, list) else value
             for name, value in node["attrs"].items()}
    return worker.listed(OPS[node["op"]](attrs, *inputs))


def function_of(case):
    """Of the inputs, a list of results; None where an op is not known."""
    steps = case.get("steps", [])
    if not all(step["op"] in OPS for step in steps or [case]):
        return None
    if not steps:
        return lambda *inputs: applied(case, inputs)
    return lambda *inputs: worker.graph_results(steps, inputs, applied)


def prepare(case):
    function = function_of(case)
    if function is None:
        return []
    call = jax.jit(function)
    arrays = [jax.device_put(array) for array in worker.inputs_of(case)]
    results = call(*arrays)
    jax.block_until_ready(results)

    def run(count):
        out = results
        for _ in range(count):
            out = call(*arrays)
        out[-1].block_until_ready()
    return [("jax", run, lambda: results)]


if __name__ == "__main__":
    worker.serve("jax", f"{jax.__version__} on {jax.devices()[0].device_kind}", prepare)
