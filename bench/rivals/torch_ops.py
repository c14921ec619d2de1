"""Our ops in PyTorch, by the registry's names: functions of the attributes and the operands.

What PyTorch has one call for is that call. PREPARED are those that need something beforehand, which
in a program is there already (the places of a pooling's winners, labels of 64 bits): functions that
give what is to be timed, without arguments.
"""
import math

import torch
import torch.nn.functional as F

aten = torch.ops.aten


def gelu_tanh(x):
    return F.gelu(x, approximate="tanh")


UNARY = {"relu": torch.relu, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt,
         "tanh": torch.tanh, "rsqrt": torch.rsqrt, "sigmoid": torch.sigmoid, "erf": torch.erf,
         "abs": torch.abs, "square": torch.square, "floor": torch.floor, "sign": torch.sign,
         "neg": torch.neg, "gelu": F.gelu, "gelu_tanh": gelu_tanh, "silu": F.silu}
BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "pow": torch.pow,
          "maximum": torch.maximum, "minimum": torch.minimum, "less": torch.lt, "equal": torch.eq}
REDUCTIONS = {"reduce_sum": torch.sum, "reduce_mean": torch.mean, "reduce_max": torch.amax,
              "reduce_min": torch.amin}


def reduction(function):
    return lambda a, x: function(x, tuple(a.get("axes") or range(x.dim())),
                                 bool(a.get("keep_dims", 0)))


def matmul(a, x, y, *rest):
    rest = list(rest)
    x = x.mT if a.get("transpose_a") else x
    y = y.mT if a.get("transpose_b") else y
    activation = a.get("activation", "none")
    if a.get("has_bias") and x.dim() == 2:
        bias = rest.pop(0)
        if activation == "relu" and bias.dim() == 1:
            result, activation = torch._addmm_activation(bias, x, y), "none"
        else:
            result = torch.addmm(bias, x, y)
    else:
        result = torch.matmul(x, y)
        if a.get("has_bias"):
            result = result + rest.pop(0)
    if activation == "relu_grad":
        return relu_grad(a, result, rest.pop(0))
    if activation != "none":
        result = UNARY[activation](result)
    return result + rest.pop(0) if a.get("has_residual") else result


def both_sides(padding):
    top, bottom, left, right = padding
    if top != bottom or left != right:
        raise ValueError("padding must be the same on both sides")
    return [top, left]


def geometry(a):
    return (a.get("stride", [1, 1]), both_sides(a.get("padding", [0] * 4)),
            a.get("dilation", [1, 1]))


def conv2d(a, x, w, *rest):
    rest = list(rest)
    y = F.conv2d(x, w, rest.pop(0) if a.get("has_bias") else None, *geometry(a),
                 a.get("group", 1))
    along = lambda v: v[:, None, None]
    if a.get("has_scale"):
        y = torch.addcmul(along(rest.pop(1)), y, along(rest.pop(0)))
    if a.get("has_residual"):
        y = y + rest.pop(0)
    return torch.relu(y) if a.get("activation") == "relu" else y


def convolution_backward(a, dy, x, w, wanted):
    results = aten.convolution_backward(dy, x, w, None, *geometry(a), False, [0, 0],
                                        a.get("group", 1), wanted)
    return next(result for result in results if result is not None)


def conv2d_input_grad(a, dy, w):
    x = dy.new_empty(a["input_size"])
    return lambda: convolution_backward(a, dy, x, w, [True, False, False])


def conv2d_weight_grad(a, dy, x):
    w = dy.new_empty(a["weight_size"])
    return lambda: convolution_backward(a, dy, x, w, [False, True, False])


def pooled(a):
    stride, padding, dilation = geometry(a)
    return a["kernel_size"], stride, padding, dilation


def max_pool2d(a, x):
    return F.max_pool2d(x, *pooled(a))


def max_pool2d_grad(a, dy, x):
    _, places = F.max_pool2d(x, *pooled(a), return_indices=True)
    return lambda: aten.max_pool2d_with_indices_backward(dy, x, *pooled(a), False, places)


def averaged(a):
    kernel, stride, padding, _ = pooled(a)
    return kernel, stride, padding, False, bool(a.get("count_include_pad", 1))


def avg_pool2d(a, x):
    return F.avg_pool2d(x, *averaged(a))


def avg_pool2d_grad(a, dy):
    x = dy.new_empty(a["input_size"])
    return lambda: aten.avg_pool2d_backward(dy, x, *averaged(a), None)


def last(a):
    return a.get("axis", -1)


def cross_entropy(_, logits, labels):
    labels = labels.long()
    return lambda: F.cross_entropy(logits, labels, reduction="none")


def cross_entropy_grad(_, dloss, logits, labels):
    labels, none, ignored = labels.long(), 0, -100
    weight = logits.new_zeros(())

    def call():
        y = F.log_softmax(logits, 1)
        dy = aten.nll_loss_backward(dloss, y, labels, None, none, ignored, weight)
        return aten._log_softmax_backward_data(dy, y, 1, logits.dtype)
    return call


def normalised(a, x):
    return list(x.shape[a.get("begin_norm_axis", -1) % x.dim():])


def layer_norm(a, x, gamma, beta):
    return aten.native_layer_norm(x, normalised(a, x), gamma, beta, a.get("epsilon", 1e-5))


def layer_norm_grad(a, dy, x, gamma, mean, rstd):
    return aten.native_layer_norm_backward(dy, x, normalised(a, x), mean, rstd, gamma, gamma,
                                           [True] * 3)


def rms_norm(a, x, gamma):
    return F.rms_norm(x, normalised(a, x), gamma, a.get("epsilon", 1e-6))


def rms_norm_grad(a, dy, x, gamma, rstd):
    return aten._fused_rms_norm_backward(dy, x, normalised(a, x), rstd, gamma, [True] * 2)


def extents(x):
    return x.shape[0], x.shape[1], math.prod(x.shape[2:])


def group_norm(a, x, gamma, beta):
    return aten.native_group_norm(x, gamma, beta, *extents(x), a["num_groups"],
                                  a.get("epsilon", 1e-5))


def group_norm_grad(a, dy, x, gamma, mean, rstd):
    return aten.native_group_norm_backward(dy, x, mean, rstd, gamma, *extents(x), a["num_groups"],
                                           [True] * 3)


def batch_norm(a, x, gamma, beta, mean, variance):
    return F.batch_norm(x, mean, variance, gamma, beta, True, a.get("momentum", 0.1),
                        a.get("epsilon", 1e-5))


def batch_norm_grad(a, dy, x, gamma, mean, rstd):
    return aten.native_batch_norm_backward(dy, x, gamma, None, None, mean, rstd, True,
                                           a.get("epsilon", 1e-5), [True] * 3)


def batch_norm_inference(a, x, gamma, beta, mean, variance):
    return F.batch_norm(x, mean, variance, gamma, beta, False, 0.0, a.get("epsilon", 1e-5))


def attention(a, q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=bool(a.get("causal")),
                                          scale=a.get("scale") or None)


def attention_grad(a, dout, q, k, v, lse, delta):
    """PyTorch computes delta as the sums of dout out along a row: of this `out` they are ours."""
    out = dout * (delta / dout.square().sum(-1)).unsqueeze(-1)
    lse = F.pad(lse, (0, -lse.shape[-1] % 32))  # rows of its kernel
    seed, offset = (torch.zeros((), dtype=torch.long, device=q.device) for _ in range(2))
    return lambda: aten._scaled_dot_product_efficient_attention_backward(
        dout, q, k, v, None, out, lse, seed, offset, 0.0, [True, True, True, False],
        bool(a.get("causal")), scale=a.get("scale") or None)[:3]


def sliced(a, x):
    if min(a["strides"]) < 0:
        raise ValueError("strides upwards only")
    return x[tuple(slice(b, b + n * s, s)
                   for b, n, s in zip(a["begin"], a["size"], a["strides"]))].contiguous()


def pad(a, x):
    pairs = a["paddings"]
    backwards = [end for i in reversed(range(x.dim())) for end in pairs[2 * i:2 * i + 2]]
    return F.pad(x, backwards, value=a.get("value", 0.0))


def split(a, x):
    return [part.contiguous() for part in x.split(a["sizes"], a.get("axis", 0))]


def gather_grad(a, indices, dy):
    return dy.new_zeros(a["shape"]).index_add_(a.get("axis", 0), indices, dy)


def one_hot(a, indices):
    if a["axis"] not in (-1, indices.dim()):
        raise ValueError("along the last axis only")
    indices = indices.long().unsqueeze(-1)
    return lambda: torch.zeros(*indices.shape[:-1], a["depth"], device=indices.device).scatter_(
        -1, indices, 1.0)


def gradient_descent(_, p, g, rate):
    return torch.addcmul(p, g, rate, value=-1)


def momentum(a, p, m, g, rate, factor):
    m = torch.addcmul(g, m, factor)
    step = torch.addcmul(g, m, factor) if a.get("use_nesterov") else m
    return torch.addcmul(p, step, rate, value=-1), m


def adam(a, *arrays):
    """In place, all tensors in one call, as PyTorch's fused optimizer does it."""
    if a.get("use_nesterov"):
        raise ValueError("without Nesterov only")
    tensors, scalars = [array.clone() for array in arrays[:-6]], arrays[-6:]
    b1_power, _, rate, b1, b2, epsilon = (scalar.item() for scalar in scalars)
    p, m, v, g = (tensors[i::4] for i in range(4))
    count = math.log(b1_power) / math.log(b1) if 0 < b1_power < 1 and 0 < b1 < 1 else 1.0
    steps = [scalars[0].new_full((), count) for _ in p]

    def call():
        torch._fused_adam_(p, g, m, v, [], steps, lr=rate, beta1=b1, beta2=b2, weight_decay=0.0,
                           eps=epsilon, amsgrad=False, maximize=False)
        return p[:1]
    return call


def drawn(draw):
    """Numbers of PyTorch's own generator."""
    return lambda a, *inputs: draw(a, inputs[-1].device, *inputs[:-1])


def truncated_normal(a, device):
    return torch.nn.init.trunc_normal_(torch.empty(a["shape"], device=device))


OPS = {
    "matmul": matmul, "conv2d": conv2d, "max_pool2d": max_pool2d, "avg_pool2d": avg_pool2d,
    "softmax": lambda a, x: F.softmax(x, last(a)),
    "log_softmax": lambda a, x: F.log_softmax(x, last(a)),
    "softmax_grad": lambda a, dy, y: aten._softmax_backward_data(dy, y, last(a), y.dtype),
    "log_softmax_grad": lambda a, dy, y: aten._log_softmax_backward_data(dy, y, last(a), y.dtype),
    "layer_norm": layer_norm, "layer_norm_grad": layer_norm_grad,
    "rms_norm": rms_norm, "rms_norm_grad": rms_norm_grad,
    "group_norm": group_norm, "group_norm_grad": group_norm_grad,
    "batch_norm": batch_norm, "batch_norm_grad": batch_norm_grad,
    "batch_norm_inference": batch_norm_inference,
    "scaled_dot_product_attention": attention,
    "transpose": lambda a, x: x.permute(a["perm"]).contiguous(),
    "broadcast_to": lambda a, x: x.expand(a["shape"]).contiguous(),
    "concat": lambda a, *arrays: torch.cat(arrays, a.get("axis", 0)),
    "flip": lambda a, x: x.flip(a["axes"]),
    "slice": sliced, "pad": pad, "split": split,
    "gather": lambda a, table, indices: table.index_select(a.get("axis", 0), indices),
    "gather_grad": gather_grad,
    "argmax": lambda a, x: torch.argmax(x, last(a)),
    "argmin": lambda a, x: torch.argmin(x, last(a)),
    "cumsum": lambda a, x: torch.cumsum(x, a.get("axis", 0)),
    "select": lambda _, condition, x, y: torch.where(condition, x, y),
    "relu_grad": lambda _, dy, y: aten.threshold_backward(dy, y, 0),
    "apply_gradient_descent": gradient_descent, "apply_momentum": momentum,
    "global_norm": lambda _, x: torch.linalg.vector_norm(x),
    "constant": lambda a: a["value"],
    "gelu_grad": lambda _, dy, x: aten.gelu_backward(dy, x),
    "gelu_tanh_grad": lambda _, dy, x: aten.gelu_backward(dy, x, approximate="tanh"),
    "silu_grad": lambda _, dy, x: aten.silu_backward(dy, x),
    "random_bits": drawn(lambda a, device: torch.randint(
        -2**31, 2**31, a["shape"], dtype=torch.int32, device=device)),
    "random_uniform": drawn(lambda a, device: torch.rand(a["shape"], device=device)),
    "random_normal": drawn(lambda a, device: torch.randn(a["shape"], device=device)),
    "truncated_normal": drawn(truncated_normal),
    "randint": drawn(lambda a, device: torch.randint(
        a["low"], a["high"], a["shape"], dtype=torch.int32, device=device)),
    "bernoulli": drawn(lambda a, device: torch.empty(a["shape"], device=device).bernoulli_(
        a.get("p", 0.5))),
    "dropout": drawn(lambda a, device, x: F.dropout(x, 1 - a.get("keep_prob", 0.5))),
    "random_permutation": drawn(lambda a, device: torch.randperm(
        a["n"], dtype=torch.int32, device=device)),
}
relu_grad = OPS["relu_grad"]
OPS.update({name: lambda _, x, f=f: f(x) for name, f in UNARY.items()})
OPS.update({name: lambda _, x, y, f=f: f(x, y) for name, f in BINARY.items()})
OPS.update({name: reduction(f) for name, f in REDUCTIONS.items()})

PREPARED = {
    "conv2d_input_grad": conv2d_input_grad, "conv2d_weight_grad": conv2d_weight_grad,
    "max_pool2d_grad": max_pool2d_grad, "avg_pool2d_grad": avg_pool2d_grad,
    "softmax_cross_entropy": cross_entropy, "softmax_cross_entropy_grad": cross_entropy_grad,
    "attention_grad": attention_grad, "one_hot": one_hot, "apply_adam": adam,
}
