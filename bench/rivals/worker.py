"""The protocol of worker.h for rivals in Python: serve(name, version, prepare).

prepare(case) gives a list of (variant's name, run(count), results()) or an empty list; a case is the
dictionary of bench/case.h. Inputs are computed as values_of there does.
"""
import json
import os
import sys
import time

import numpy as np

DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i32": np.int32,
          "i64": np.int64, "u8": np.uint8, "bool": np.bool_}


def values_of(operand, number):
    shape = operand["shape"]
    i = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.uint32)
    h = (i + np.uint32(1)) * np.uint32(2654435761) + np.uint32(number * 97)
    h = (h ^ (h >> np.uint32(15))) * np.uint32(739982445)
    h ^= h >> np.uint32(12)
    h >>= np.uint32(8)
    u = h.astype(np.float32) / np.float32(16777216)
    fills = [lambda: 2 * u - 1, lambda: u + np.float32(0.5), lambda: u,
             lambda: h % np.uint32(operand["limit"])]
    return fills[operand["fill"]]().astype(DTYPES[operand["dtype"]]).reshape(shape)


def inputs_of(case):
    return [values_of(operand, i) for i, operand in enumerate(case["inputs"])]


def listed(results):
    return list(results) if isinstance(results, (list, tuple)) else [results]


def graph_results(steps, inputs, apply):
    """What no step reads; apply(step, operands) gives a step's results as a list."""
    values, is_read = list(inputs), set(range(len(inputs)))
    for step in steps:
        is_read.update(step["inputs"])
        values += apply(step, [values[number] for number in step["inputs"]])
    return [value for number, value in enumerate(values) if number not in is_read]


def checksum(array):
    v = np.asarray(array).astype(np.float64).ravel()
    if v.size == 0:
        return [0.0, 0.0]
    i = np.arange(v.size)
    return [float(np.mean(np.abs(v) * (1 + i % 13 / 13.0))),
            float(np.mean(v * (7919 * i % 101 / 50.0 - 1)))]


def answer(request, variants, prepare):
    if "prepare" in request:
        case = request["prepare"]
        variants.clear()
        if all(operand["dtype"] in DTYPES for operand in case["inputs"]):
            variants.extend(prepare(case))
        return {"variants": [name for name, _, _ in variants]}
    if "run" in request:
        run = variants[request["run"]][1]
        start = time.perf_counter()
        run(request["count"])
        return {"seconds": time.perf_counter() - start}
    return {"checksums": [checksum(result) for result in variants[request["check"]][2]()]}


def serve(name, version, prepare):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes to standard error

    def reply(message):
        print(json.dumps(message), file=answers, flush=True)

    reply({"rival": name, "version": version})
    variants = []
    for line in sys.stdin:
        try:
            reply(answer(json.loads(line), variants, prepare))
        except Exception as error:  # whatever a library raises is this rival's answer
            reply({"error": f"{type(error).__name__}: {error}"})


def threads():
    return int(os.environ.get("BALLAST_BENCH_THREADS", "2"))
