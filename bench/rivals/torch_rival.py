#!/usr/bin/env python3
"""PyTorch on its GPU (cuBLAS, cuDNN, its own kernels): operations one by one, in full f32 (no TF32).

Two variants: `torch` calls them as a program would, `torch graph` replays a CUDA graph of the calls.
Runs follow each other on one stream; the last one is waited for. cuDNN measures which of its
algorithms is fastest before. Without a GPU the first one alone, on CPUs.
"""
try:
    import torch
except ImportError as error:
    raise SystemExit(f"no PyTorch here: {error}")

import worker
from torch_ops import OPS, PREPARED

HAS_GPU = torch.cuda.is_available()
DEVICE = "cuda" if HAS_GPU else "cpu"
WARM_UP = 3  # runs before a graph is captured, in which libraries choose and take their memory

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True
torch.set_num_threads(worker.threads())
torch.set_grad_enabled(False)


def wait():
    if HAS_GPU:
        torch.cuda.synchronize()


def applied(node, inputs):
    return worker.listed(OPS[node["op"]](node["attrs"], *inputs))


def call_of(case):
    """A function without arguments that gives a list of results; None where an op is not known."""
    arrays = [torch.from_numpy(array).to(DEVICE) for array in worker.inputs_of(case)]
    steps = case.get("steps", [])
    if not steps and case["op"] in PREPARED:
        call = PREPARED[case["op"]](case["attrs"], *arrays)
        return lambda: worker.listed(call())
    if not all(step["op"] in OPS for step in steps or [case]):
        return None
    if not steps:
        return lambda: applied(case, arrays)
    return lambda: worker.graph_results(steps, arrays, applied)


def captured(call):
    """What replays the call, and the results that each replay writes."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = call()
    return graph.replay, results


def variant(name, call, results):
    def run(count):
        for _ in range(count):
            call()
        wait()

    def arrays():
        call()
        wait()
        return [result.cpu().numpy() for result in results()]
    return name, run, arrays


def prepare(case):
    call = call_of(case)
    if call is None:
        return []
    variants = [variant("torch", call, call)]
    if HAS_GPU:
        replay, results = captured(call)
        variants.append(variant("torch graph", replay, lambda: results))
    return variants


if __name__ == "__main__":
    name = torch.cuda.get_device_name() if HAS_GPU else "CPU"
    worker.serve("torch", f"{torch.__version__} on {name}", prepare)
