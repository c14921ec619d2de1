#!/usr/bin/env python3
"""ONNX Runtime's CPU provider: a model of the case, inputs and outputs bound once.

Operands are inputs of the model, so that packing counts; a convolution's weights are constants,
because that is how ONNX Runtime chooses its blocked layouts.
"""
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import worker

OPSET = 23
UNARY = {"relu": "Relu", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "tanh": "Tanh",
         "sigmoid": "Sigmoid", "erf": "Erf", "abs": "Abs", "floor": "Floor", "neg": "Neg",
         "sign": "Sign"}
BINARY = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "pow": "Pow", "less": "Less",
          "maximum": "Max", "minimum": "Min", "equal": "Equal"}
REDUCTIONS = {"reduce_sum": "ReduceSum", "reduce_mean": "ReduceMean", "reduce_max": "ReduceMax",
              "reduce_min": "ReduceMin", "reduce_prod": "ReduceProd"}


class Model:
    """Nodes over x0, x1, ...; add() gives the name of a node's first output."""

    def __init__(self, arrays):
        self.arrays, self.nodes, self.constants, self.fixed = arrays, [], [], set()
        self.inputs = [f"x{i}" for i in range(len(arrays))]

    def add(self, op, inputs, outputs=1, **attrs):
        names = [f"n{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attrs))
        return names[0] if outputs == 1 else names

    def constant(self, values, dtype=np.int64):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def fix(self, number):
        """The input becomes a constant of the model."""
        self.constants.append(numpy_helper.from_array(self.arrays[number], self.inputs[number]))
        self.fixed.add(number)

    def session(self, outputs):
        free = [i for i in range(len(self.arrays)) if i not in self.fixed]
        inputs = [helper.make_tensor_value_info(
            self.inputs[i], helper.np_dtype_to_tensor_dtype(self.arrays[i].dtype),
            self.arrays[i].shape) for i in free]
        values = [helper.make_tensor_value_info(o, TensorProto.UNDEFINED, None) for o in outputs]
        graph = helper.make_graph(self.nodes, "case", inputs, values, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                                  ir_version=11)
        for value in model.graph.output:
            value.ClearField("type")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = worker.threads()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                               providers=["CPUExecutionProvider"])
        return session, {self.inputs[i]: self.arrays[i] for i in free}


def matmul(m, attrs):
    a, b = m.inputs[0], m.inputs[1]
    flags = [attrs.get("transpose_a", 0), attrs.get("transpose_b", 0)]
    activation = attrs.get("activation", "none")
    if activation not in ("none", "relu", "gelu", "gelu_tanh") or attrs.get("has_residual"):
        return None
    if m.arrays[0].ndim == 2:
        bias = m.inputs[2:3] if attrs.get("has_bias") else []
        y = m.add("Gemm", [a, b, *bias], transA=flags[0], transB=flags[1])
    else:
        swap = list(range(m.arrays[1].ndim - 2)) + [m.arrays[1].ndim - 1, m.arrays[1].ndim - 2]
        operands = [m.add("Transpose", [x], perm=swap) if flag else x
                    for x, flag in zip((a, b), flags)]
        y = m.add("MatMul", operands)
    if activation == "relu":
        y = m.add("Relu", [y])
    elif activation != "none":
        y = m.add("Gelu", [y], approximate="tanh" if activation == "gelu_tanh" else "none")
    return [y]


def reduction(m, attrs, op):
    axes = [m.constant(attrs["axes"])] if attrs.get("axes") else []
    return [m.add(op, [m.inputs[0], *axes], keepdims=attrs.get("keep_dims", 0))]


def window(attrs):
    top, bottom, left, right = attrs.get("padding", [0, 0, 0, 0])
    return {"strides": attrs.get("stride", [1, 1]), "pads": [top, left, bottom, right],
            "dilations": attrs.get("dilation", [1, 1])}


def conv2d(m, attrs):
    for number in range(1, len(m.arrays)):
        if number != len(m.arrays) - 1 or not attrs.get("has_residual"):
            m.fix(number)
    rest = m.inputs[2:]
    bias = [rest.pop(0)] if attrs.get("has_bias") else []
    y = m.add("Conv", [*m.inputs[:2], *bias], group=attrs.get("group", 1), **window(attrs))
    if attrs.get("has_scale"):
        per_channel = m.constant([1, -1, 1, 1])
        scale = m.add("Reshape", [rest.pop(0), per_channel])
        shift = m.add("Reshape", [rest.pop(0), per_channel])
        y = m.add("Add", [m.add("Mul", [y, scale]), shift])
    if attrs.get("has_residual"):
        y = m.add("Add", [y, rest.pop(0)])
    return [m.add("Relu", [y]) if attrs.get("activation") == "relu" else y]


def pool2d(m, attrs, op):
    more = {"count_include_pad": attrs.get("count_include_pad", 1)} if op == "AveragePool" else {}
    shape = window(attrs)
    if op == "AveragePool":
        del shape["dilations"]
    return [m.add(op, m.inputs, kernel_shape=attrs["kernel_size"], **shape, **more)]


def sliced(m, attrs):
    ends = [b + s * d for b, s, d in zip(attrs["begin"], attrs["size"], attrs["strides"])]
    ends = [end if end >= 0 else -2**31 for end in ends]
    axes = list(range(len(ends)))
    return [m.add("Slice", [m.inputs[0], *(m.constant(v) for v in (
        attrs["begin"], ends, axes, attrs["strides"]))])]


def pad(m, attrs):
    p = attrs["paddings"]
    return [m.add("Pad", [m.inputs[0], m.constant(p[0::2] + p[1::2]),
                          m.constant(attrs.get("value", 0.0), np.float32)])]


def one_hot(m, attrs):
    indices = m.add("Cast", m.inputs, to=TensorProto.INT64)
    return [m.add("OneHot", [indices, m.constant([attrs["depth"]]),
                             m.constant([0, 1], np.float32)], axis=attrs["axis"])]


def split(m, attrs):
    sizes = attrs["sizes"]
    return m.add("Split", [m.inputs[0], m.constant(sizes)], outputs=len(sizes),
                 axis=attrs.get("axis", 0))


def cross_entropy(m, _):
    logits, labels = m.inputs
    column = m.add("Unsqueeze", [labels, m.constant([1])])
    picked = m.add("GatherElements", [m.add("LogSoftmax", [logits], axis=1), column], axis=1)
    return [m.add("Neg", [m.add("Squeeze", [picked, m.constant([1])])])]


def cross_entropy_grad(m, _):
    dloss, logits, labels = m.inputs
    labels = m.add("Cast", [labels], to=TensorProto.INT64)
    hot = m.add("OneHot", [labels, m.constant([m.arrays[1].shape[1]]),
                           m.constant([0, 1], np.float32)])
    difference = m.add("Sub", [m.add("Softmax", [logits], axis=1), hot])
    return [m.add("Mul", [difference, m.add("Unsqueeze", [dloss, m.constant([1])])])]


def attention(m, attrs):
    more = {"scale": attrs["scale"]} if attrs.get("scale") else {}
    return [m.add("Attention", m.inputs[:3], is_causal=attrs.get("causal", 0), **more)]


def norm(m, attrs, op, **more):
    return [m.add(op, m.inputs, epsilon=attrs.get("epsilon", 1e-5), **more)]


def scale_gelu_residual(m, _):
    x, scale, shift, residual = m.inputs
    inner = m.add("Add", [m.add("Mul", [x, scale]), shift])
    return [m.add("Add", [m.add("Gelu", [inner], approximate="tanh"), residual])]


def silu(m, _):
    return [m.add("Mul", [m.inputs[0], m.add("Sigmoid", m.inputs)])]


MAKERS = {
    "matmul": matmul, "conv2d": conv2d, "slice": sliced, "pad": pad, "silu": silu,
    "split": split, "one_hot": one_hot, "softmax_cross_entropy": cross_entropy,
    "softmax_cross_entropy_grad": cross_entropy_grad,
    "max_pool2d": lambda m, a: pool2d(m, a, "MaxPool"),
    "avg_pool2d": lambda m, a: pool2d(m, a, "AveragePool"),
    "gelu": lambda m, _: [m.add("Gelu", m.inputs)],
    "gelu_tanh": lambda m, _: [m.add("Gelu", m.inputs, approximate="tanh")],
    "softmax": lambda m, a: [m.add("Softmax", m.inputs, axis=a.get("axis", -1))],
    "log_softmax": lambda m, a: [m.add("LogSoftmax", m.inputs, axis=a.get("axis", -1))],
    "argmax": lambda m, a: [m.add("ArgMax", m.inputs, axis=a.get("axis", -1), keepdims=0)],
    "cumsum": lambda m, a: [m.add("CumSum", [m.inputs[0], m.constant(a.get("axis", 0))])],
    "transpose": lambda m, a: [m.add("Transpose", m.inputs, perm=a["perm"])],
    "broadcast_to": lambda m, a: [m.add("Expand", [m.inputs[0], m.constant(a["shape"])])],
    "concat": lambda m, a: [m.add("Concat", m.inputs, axis=a.get("axis", 0))],
    "gather": lambda m, a: [m.add("Gather", m.inputs, axis=a.get("axis", 0))],
    "index_select": lambda m, a: [m.add("Gather", m.inputs, axis=a.get("axis", 0))],
    "tile": lambda m, a: [m.add("Tile", [m.inputs[0], m.constant(a["multiples"])])],
    "select": lambda m, _: [m.add("Where", m.inputs)],
    "chain_add_mul": lambda m, _: [m.add("Mul", [m.add("Add", m.inputs[:2]), m.inputs[2]])],
    "scaled_dot_product_attention": attention,
    "layer_norm": lambda m, a: norm(m, a, "LayerNormalization", axis=a.get("begin_norm_axis", -1)),
    "rms_norm": lambda m, a: norm(m, {"epsilon": 1e-6, **a}, "RMSNormalization",
                                  axis=a.get("begin_norm_axis", -1)),
    "group_norm": lambda m, a: norm(m, a, "GroupNormalization", num_groups=a["num_groups"]),
    "batch_norm_inference": lambda m, a: norm(m, a, "BatchNormalization"),
    "chain_scale_gelu_residual": scale_gelu_residual,
}
MAKERS.update({name: lambda m, _, op=op: [m.add(op, m.inputs)]
               for name, op in {**UNARY, **BINARY}.items()})
MAKERS.update({name: lambda m, a, op=op: reduction(m, a, op) for name, op in REDUCTIONS.items()})


def prepare(case):
    maker = MAKERS.get(case["op"])
    if maker is None:
        return []
    model = Model(worker.inputs_of(case))
    outputs = maker(model, case["attrs"])
    if not outputs:
        return []
    session, feed = model.session(outputs)
    binding = session.io_binding()
    kept = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in feed.values()]
    for name, value in zip(feed, kept):
        binding.bind_ortvalue_input(name, value)
    results = [onnxruntime.OrtValue.ortvalue_from_numpy(result)
               for result in session.run(None, feed)]
    for name, value in zip(outputs, results):
        binding.bind_ortvalue_output(name, value)

    def run(count):
        for _ in range(count):
            session.run_with_iobinding(binding)
    return [("onnxruntime", run, lambda: [value.numpy() for value in results])]


if __name__ == "__main__":
    worker.serve("onnxruntime", onnxruntime.__version__, prepare)
