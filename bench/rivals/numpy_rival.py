#!/usr/bin/env python3
"""numpy: one thread, results written into arrays that are made once where numpy allows it."""
import numpy as np

import worker

UNARY = {"exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "abs": np.abs,
         "square": np.square, "floor": np.floor, "sign": np.sign, "neg": np.negative}
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power,
          "maximum": np.maximum, "minimum": np.minimum, "less": np.less, "equal": np.equal}
REDUCTIONS = {"reduce_sum": np.sum, "reduce_mean": np.mean, "reduce_max": np.max,
              "reduce_min": np.min, "reduce_prod": np.prod, "reduce_any": np.any,
              "reduce_all": np.all}


def with_out(function, *args, **kwargs):
    """A call into one array, made by a first call."""
    out = np.asarray(function(*args, **kwargs))
    if out.ndim == 0:
        return lambda: function(*args, **kwargs), out
    return lambda: function(*args, out=out, **kwargs), out


def copied(view):
    """A view made dense."""
    out = np.empty(view.shape, view.dtype)
    return lambda: np.copyto(out, view), out


def reduction(case, x):
    axes = tuple(case["attrs"].get("axes", [])) or None
    return with_out(REDUCTIONS[case["op"]], x, axis=axes)


def arg(case, x):
    function = np.argmax if case["op"] == "argmax" else np.argmin
    return with_out(function, x, axis=case["attrs"].get("axis", -1))


def sliced(case, x):
    attrs = case["attrs"]
    index = tuple(slice(b, b + s * d, d) if b + s * d >= 0 else slice(b, None, d)
                  for b, s, d in zip(attrs["begin"], attrs["size"], attrs["strides"]))
    return copied(x[index])


def concat(case, *arrays):
    return with_out(np.concatenate, arrays, axis=case["attrs"].get("axis", 0))


def split(case, x):
    axis = case["attrs"].get("axis", 0)
    parts = np.split(x, np.cumsum(case["attrs"]["sizes"])[:-1], axis=axis)
    outs = [np.empty(part.shape, part.dtype) for part in parts]

    def run():
        for out, part in zip(outs, parts):
            np.copyto(out, part)
    return run, outs


def flip(case, x):
    return copied(np.flip(x, case["attrs"]["axes"]))


def pad(case, x):
    p = case["attrs"]["paddings"]
    pairs = [(p[2 * i], p[2 * i + 1]) for i in range(x.ndim)]
    value = case["attrs"].get("value", 0.0)
    out = np.pad(x, pairs, constant_values=value)
    inner = out[tuple(slice(b, b + n) for (b, _), n in zip(pairs, x.shape))]

    def run():
        out[...] = value
        inner[...] = x
    return run, out


def gather(case, table, indices):
    out = np.take(table, indices, axis=case["attrs"].get("axis", 0))
    # Without a mode other than "raise" numpy buffers the output.
    return lambda: np.take(table, indices, axis=case["attrs"].get("axis", 0), out=out,
                           mode="clip"), out


def gather_grad(case, indices, dy):
    out = np.zeros(case["attrs"]["shape"], dy.dtype)
    if case["attrs"].get("axis", 0) != 0:
        raise ValueError("rows only")

    def run():
        out[...] = 0
        np.add.at(out, indices, dy)
    return run, out


def one_hot(case, indices):
    out = np.zeros((indices.size, case["attrs"]["depth"]), np.float32)
    rows = np.arange(indices.size)

    def run():
        out[...] = 0
        out[rows, indices] = 1
    return run, out


def adam(case, *arrays):
    """Tensor by tensor, into arrays made once."""
    tensors, scalars = arrays[:-6], [float(s) for s in arrays[-6:]]
    b1_power, b2_power, rate, b1, b2, epsilon = scalars
    step = np.float32(rate * np.sqrt(1 - b2_power) / (1 - b1_power))
    groups = [tensors[i:i + 4] for i in range(0, len(tensors), 4)]
    outs = [np.empty_like(x) for group in groups for x in group[:3]]
    scratch = [np.empty_like(group[0]) for group in groups]

    def run():
        for i, ((p, m, v, g), t) in enumerate(zip(groups, scratch)):
            p_new, m_new, v_new = outs[3 * i:3 * i + 3]
            np.multiply(m, np.float32(b1), out=m_new)
            np.multiply(g, np.float32(1 - b1), out=t)
            np.add(m_new, t, out=m_new)
            np.multiply(g, g, out=t)
            np.multiply(t, np.float32(1 - b2), out=t)
            np.multiply(v, np.float32(b2), out=v_new)
            np.add(v_new, t, out=v_new)
            np.sqrt(v_new, out=t)
            np.add(t, np.float32(epsilon), out=t)
            np.divide(m_new, t, out=t)
            np.multiply(t, step, out=t)
            np.subtract(p, t, out=p_new)
    return run, outs


def generator():
    return np.random.Generator(np.random.SFC64(1))


def random_uniform(case, _):
    g, out = generator(), np.empty(case["attrs"]["shape"], np.float32)
    return lambda: g.random(out=out, dtype=np.float32), out


def random_normal(case, _):
    g, out = generator(), np.empty(case["attrs"]["shape"], np.float32)
    return lambda: g.standard_normal(out=out, dtype=np.float32), out


def random_permutation(case, _):
    g, n = generator(), case["attrs"]["n"]
    return lambda: g.permutation(n), np.arange(n)


def randint(case, _):
    g, a = generator(), case["attrs"]
    call = lambda: g.integers(a["low"], a["high"], a["shape"], dtype=np.int32)
    return call, call()


def dropout(case, x, _):
    g, keep, out = generator(), np.float32(case["attrs"]["keep_prob"]), np.empty_like(x)
    u = np.empty_like(x)

    def run():
        g.random(out=u, dtype=np.float32)
        np.multiply(x, u < keep, out=out)
        np.multiply(out, 1 / keep, out=out)
    return run, out


def add_mul(_, a, b, c):
    out = a + b

    def run():
        np.add(a, b, out=out)
        np.multiply(out, c, out=out)
    return run, out


MAKERS = {
    "transpose": lambda case, x: copied(x.transpose(case["attrs"]["perm"])),
    "broadcast_to": lambda case, x: copied(np.broadcast_to(x, case["attrs"]["shape"])),
    "cumsum": lambda case, x: with_out(np.cumsum, x, axis=case["attrs"].get("axis", 0)),
    "argmax": arg, "argmin": arg, "slice": sliced, "concat": concat, "split": split,
    "flip": flip, "pad": pad,
    "gather": gather, "gather_grad": gather_grad, "one_hot": one_hot, "apply_adam": adam,
    "random_uniform": random_uniform, "random_normal": random_normal,
    "random_permutation": random_permutation, "randint": randint, "dropout": dropout,
    "index_select": gather, "chain_add_mul": add_mul,
    "tile": lambda case, x: (lambda: np.tile(x, case["attrs"]["multiples"]),
                             np.tile(x, case["attrs"]["multiples"])),
    "relu": lambda _, x: with_out(np.maximum, x, np.float32(0)),
    "select": lambda _, m, a, b: (lambda: np.where(m, a, b), np.where(m, a, b)),
}
MAKERS.update({name: lambda _, x, f=f: with_out(f, x) for name, f in UNARY.items()})
MAKERS.update({name: lambda _, a, b, f=f: with_out(f, a, b) for name, f in BINARY.items()})
MAKERS.update({name: reduction for name in REDUCTIONS})


def prepare(case):
    maker = MAKERS.get(case["op"])
    if maker is None:
        return []
    call, out = maker(case, *worker.inputs_of(case))

    def run(count):
        for _ in range(count):
            call()
    run(1)
    return [("numpy", run, lambda: out if isinstance(out, list) else [out])]


if __name__ == "__main__":
    worker.serve("numpy", np.__version__, prepare)
