"""Our ops in JAX, by the registry's names: functions of the attributes and the operands.

Gradients are those of the op's own operands: statistics that are given are used, not computed anew.
"""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def gelu(x):
    return jax.nn.gelu(x, approximate=False)


def gelu_tanh(x):
    return jax.nn.gelu(x, approximate=True)


UNARY = {"relu": jax.nn.relu, "exp": jnp.exp, "log": jnp.log, "sqrt": jnp.sqrt, "tanh": jnp.tanh,
         "rsqrt": lax.rsqrt, "sigmoid": jax.nn.sigmoid, "erf": lax.erf, "abs": jnp.abs,
         "square": jnp.square, "floor": jnp.floor, "sign": jnp.sign, "neg": jnp.negative,
         "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": jax.nn.silu}
BINARY = {"add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.divide,
          "pow": jnp.power, "maximum": jnp.maximum, "minimum": jnp.minimum, "less": jnp.less,
          "equal": jnp.equal}
REDUCTIONS = {"reduce_sum": jnp.sum, "reduce_mean": jnp.mean, "reduce_max": jnp.max,
              "reduce_min": jnp.min, "reduce_prod": jnp.prod, "reduce_any": jnp.any,
              "reduce_all": jnp.all}


def unary_grad(function):
    """Of dy and x."""
    return lambda _, dy, x: jax.vjp(function, x)[1](dy)[0]


def reduction(function):
    return lambda a, x: function(x, axis=a.get("axes") or None,
                                 keepdims=bool(a.get("keep_dims", 0)))


def swapped(x):
    return jnp.swapaxes(x, -1, -2)


def matmul(a, x, y, *rest):
    rest = list(rest)
    x = swapped(x) if a.get("transpose_a") else x
    y = jnp.matmul(x, swapped(y) if a.get("transpose_b") else y)
    if a.get("has_bias"):
        y = y + rest.pop(0)
    activation = a.get("activation", "none")
    if activation == "relu_grad":
        return jnp.where(rest.pop(0) > 0, y, 0)
    if activation != "none":
        y = UNARY[activation](y)
    return y + rest.pop(0) if a.get("has_residual") else y


def pairs(padding):
    top, bottom, left, right = padding
    return [(top, bottom), (left, right)]


def convolution(a, x, w):
    return lax.conv_general_dilated(
        x, w, a.get("stride", (1, 1)), pairs(a.get("padding", (0, 0, 0, 0))),
        rhs_dilation=a.get("dilation", (1, 1)), feature_group_count=a.get("group", 1),
        dimension_numbers=("NCHW", "OIHW", "NCHW"))


def conv2d(a, x, w, *rest):
    rest = list(rest)
    y = convolution(a, x, w)
    along = lambda v: v[:, None, None]
    if a.get("has_bias"):
        y = y + along(rest.pop(0))
    if a.get("has_scale"):
        y = y * along(rest.pop(0)) + along(rest.pop(0))
    if a.get("has_residual"):
        y = y + rest.pop(0)
    return jax.nn.relu(y) if a.get("activation") == "relu" else y


def transposed(function, shape, dy):
    """What the transpose of a linear function of an array of `shape` makes of dy."""
    return jax.linear_transpose(function, jax.ShapeDtypeStruct(shape, dy.dtype))(dy)[0]


def conv2d_input_grad(a, dy, w):
    return transposed(lambda x: convolution(a, x, w), a["input_size"], dy)


def conv2d_weight_grad(a, dy, x):
    return transposed(lambda w: convolution(a, x, w), a["weight_size"], dy)


def window(a, x, start, function):
    return lax.reduce_window(
        x, np.array(start, x.dtype), function, (1, 1, *a["kernel_size"]),
        (1, 1, *a.get("stride", (1, 1))),
        [(0, 0), (0, 0), *pairs(a.get("padding", (0, 0, 0, 0)))],
        window_dilation=(1, 1, *a.get("dilation", (1, 1))))


def max_pool2d(a, x):
    return window(a, x, -np.inf, lax.max)


def avg_pool2d(a, x):
    if not a.get("count_include_pad", 1):
        raise ValueError("padding must count")
    return window(a, x, 0, lax.add) / np.float32(np.prod(a["kernel_size"]))


def max_pool2d_grad(a, dy, x):
    return jax.vjp(lambda x: max_pool2d(a, x), x)[1](dy)[0]


def avg_pool2d_grad(a, dy):
    return transposed(lambda x: avg_pool2d(a, x), a["input_size"], dy)


def last(a):
    return a.get("axis", -1)


def softmax_grad(a, dy, y):
    return (dy - jnp.sum(dy * y, axis=last(a), keepdims=True)) * y


def log_softmax_grad(a, dy, y):
    return dy - jnp.exp(y) * jnp.sum(dy, axis=last(a), keepdims=True)


def cross_entropy(_, logits, labels):
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1,
                                 mode="promise_in_bounds")
    return -picked[:, 0]


def cross_entropy_grad(_, dloss, logits, labels):
    hot = jax.nn.one_hot(labels, logits.shape[1], dtype=logits.dtype)
    return dloss[:, None] * (jax.nn.softmax(logits) - hot)


def moments(x, axes, epsilon):
    mean = jnp.mean(x, axis=axes, keepdims=True)
    variance = jnp.mean(jnp.square(x - mean), axis=axes, keepdims=True)
    return mean, variance, lax.rsqrt(variance + epsilon)


def norm_grad(dy, x, gamma, mean, rstd, axes, over):
    """dx, dgamma, dbeta: statistics are over `axes`, parameters' gradients over `over`."""
    centred = (x - mean) * rstd
    dn = dy * gamma
    inner = lambda v: jnp.mean(v, axis=axes, keepdims=True)
    dx = rstd * (dn - inner(dn) - centred * inner(dn * centred))
    return dx, jnp.sum(dy * centred, axis=over), jnp.sum(dy, axis=over)


def normalised(a, x):
    """The axes that a layer norm normalises, and those before."""
    begin = a.get("begin_norm_axis", -1) % x.ndim
    return tuple(range(begin, x.ndim)), tuple(range(begin))


def layer_norm(a, x, gamma, beta):
    mean, _, rstd = moments(x, normalised(a, x)[0], a.get("epsilon", 1e-5))
    return (x - mean) * rstd * gamma + beta, mean, rstd


def layer_norm_grad(a, dy, x, gamma, mean, rstd):
    return norm_grad(dy, x, gamma, mean, rstd, *normalised(a, x))


def rms_norm(a, x, gamma):
    axes = normalised(a, x)[0]
    rstd = lax.rsqrt(jnp.mean(jnp.square(x), axis=axes, keepdims=True) + a.get("epsilon", 1e-6))
    return x * rstd * gamma, rstd


def rms_norm_grad(a, dy, x, gamma, rstd):
    axes, over = normalised(a, x)
    scaled, dn = x * rstd, dy * gamma
    dx = rstd * (dn - scaled * jnp.mean(dn * scaled, axis=axes, keepdims=True))
    return dx, jnp.sum(dy * scaled, axis=over)


def grouped(a, x):
    groups = a["num_groups"]
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, -1)


def by_group(a, channel):
    return channel.reshape(1, a["num_groups"], -1, 1)


def group_norm(a, x, gamma, beta):
    x4 = grouped(a, x)
    mean, _, rstd = moments(x4, (2, 3), a.get("epsilon", 1e-5))
    y = (x4 - mean) * rstd * by_group(a, gamma) + by_group(a, beta)
    return y.reshape(x.shape), mean[:, :, 0, 0], rstd[:, :, 0, 0]


def group_norm_grad(a, dy, x, gamma, mean, rstd):
    statistic = lambda v: v[:, :, None, None]
    dx, dgamma, dbeta = norm_grad(grouped(a, dy), grouped(a, x), by_group(a, gamma),
                                  statistic(mean), statistic(rstd), (2, 3), (0, 3))
    return dx.reshape(x.shape), dgamma.ravel(), dbeta.ravel()


def by_channel(x, v):
    return v.reshape(1, -1, *[1] * (x.ndim - 2))


def but_channels(x):
    return (0, *range(2, x.ndim))


def batch_norm(a, x, gamma, beta, running_mean, running_variance):
    mean, variance, rstd = moments(x, but_channels(x), a.get("epsilon", 1e-5))
    y = (x - mean) * rstd * by_channel(x, gamma) + by_channel(x, beta)
    mean, variance, rstd = mean.ravel(), variance.ravel(), rstd.ravel()
    count = x.size // x.shape[1]
    momentum = a.get("momentum", 0.1)
    moved = lambda old, new: (1 - momentum) * old + momentum * new
    return (y, moved(running_mean, mean), moved(running_variance, variance * (count / (count - 1))),
            mean, rstd)


def batch_norm_grad(_, dy, x, gamma, mean, rstd):
    axes = but_channels(x)
    return norm_grad(dy, x, by_channel(x, gamma), by_channel(x, mean), by_channel(x, rstd), axes,
                     axes)


def batch_norm_inference(a, x, gamma, beta, mean, variance):
    scale = gamma * lax.rsqrt(variance + a.get("epsilon", 1e-5))
    return (x - by_channel(x, mean)) * by_channel(x, scale) + by_channel(x, beta)


def scores(a, q, k):
    scale = a.get("scale") or q.shape[-1] ** -0.5
    s = scale * jnp.matmul(q, swapped(k))
    if not a.get("causal"):
        return scale, s
    return scale, jnp.where(jnp.tri(*s.shape[-2:], dtype=bool), s, -jnp.inf)


def attention(a, q, k, v):
    _, s = scores(a, q, k)
    lse = jax.nn.logsumexp(s, axis=-1)
    return jnp.matmul(jnp.exp(s - lse[..., None]), v), lse


def attention_grad(a, dout, q, k, v, lse, delta):
    scale, s = scores(a, q, k)
    p = jnp.exp(s - lse[..., None])
    ds = scale * p * (jnp.matmul(dout, swapped(v)) - delta[..., None])
    return jnp.matmul(ds, k), jnp.matmul(swapped(ds), q), jnp.matmul(swapped(p), dout)


def sliced(a, x):
    return x[tuple(slice(b, b + s * d if b + s * d >= 0 else None, d)
                   for b, s, d in zip(a["begin"], a["size"], a["strides"]))]


def pad(a, x):
    p = a["paddings"]
    return jnp.pad(x, [(p[2 * i], p[2 * i + 1]) for i in range(x.ndim)],
                   constant_values=a.get("value", 0.0))


def split(a, x):
    return jnp.split(x, np.cumsum(a["sizes"])[:-1].tolist(), axis=a.get("axis", 0))


def gather(a, table, indices):
    before = (slice(None),) * (a.get("axis", 0) % table.ndim)
    return table.at[(*before, indices)].get(mode="promise_in_bounds")


def gather_grad(a, indices, dy):
    if a.get("axis", 0) != 0:
        raise ValueError("rows only")
    return jnp.zeros(a["shape"], dy.dtype).at[indices].add(dy, mode="promise_in_bounds")


def one_hot(a, indices):
    return jax.nn.one_hot(indices, a["depth"], axis=a["axis"], dtype=jnp.float32)


def gradient_descent(_, p, g, rate):
    return p - rate * g


def momentum(a, p, m, g, rate, factor):
    m = factor * m + g
    return p - rate * (g + factor * m if a.get("use_nesterov") else m), m


def adam(a, *arrays):
    if a.get("use_nesterov"):
        raise ValueError("without Nesterov only")
    tensors, (b1_power, b2_power, rate, b1, b2, epsilon) = arrays[:-6], arrays[-6:]
    step = rate * jnp.sqrt(1 - b2_power) / (1 - b1_power)
    results = []
    for i in range(0, len(tensors), 4):
        p, m, v, g = tensors[i:i + 4]
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * jnp.square(g)
        results += [p - step * m / (jnp.sqrt(v) + epsilon), m, v]
    return results


def drawn(draw):
    """Numbers of JAX's own generator: the two words of our key make one of its keys."""
    return lambda a, *inputs: draw(
        jax.random.wrap_key_data(lax.convert_element_type(inputs[-1], jnp.uint32)), a, *inputs[:-1])


def dropout(key, a, x):
    keep = a.get("keep_prob", 0.5)
    return jnp.where(jax.random.bernoulli(key, keep, x.shape), x / keep, 0)


OPS = {
    "matmul": matmul, "conv2d": conv2d, "conv2d_input_grad": conv2d_input_grad,
    "conv2d_weight_grad": conv2d_weight_grad, "max_pool2d": max_pool2d, "avg_pool2d": avg_pool2d,
    "max_pool2d_grad": max_pool2d_grad, "avg_pool2d_grad": avg_pool2d_grad,
    "softmax": lambda a, x: jax.nn.softmax(x, axis=last(a)),
    "log_softmax": lambda a, x: jax.nn.log_softmax(x, axis=last(a)),
    "softmax_grad": softmax_grad, "log_softmax_grad": log_softmax_grad,
    "softmax_cross_entropy": cross_entropy, "softmax_cross_entropy_grad": cross_entropy_grad,
    "layer_norm": layer_norm, "layer_norm_grad": layer_norm_grad,
    "rms_norm": rms_norm, "rms_norm_grad": rms_norm_grad,
    "group_norm": group_norm, "group_norm_grad": group_norm_grad,
    "batch_norm": batch_norm, "batch_norm_grad": batch_norm_grad,
    "batch_norm_inference": batch_norm_inference,
    "scaled_dot_product_attention": attention, "attention_grad": attention_grad,
    "transpose": lambda a, x: jnp.transpose(x, a["perm"]),
    "broadcast_to": lambda a, x: jnp.broadcast_to(x, a["shape"]),
    "concat": lambda a, *arrays: jnp.concatenate(arrays, axis=a.get("axis", 0)),
    "flip": lambda a, x: jnp.flip(x, a["axes"]),
    "slice": sliced, "pad": pad, "split": split, "one_hot": one_hot,
    "gather": gather, "gather_grad": gather_grad,
    "argmax": lambda a, x: jnp.argmax(x, axis=last(a)),
    "argmin": lambda a, x: jnp.argmin(x, axis=last(a)),
    "cumsum": lambda a, x: jnp.cumsum(x, axis=a.get("axis", 0)),
    "select": lambda _, condition, x, y: jnp.where(condition, x, y),
    "relu_grad": lambda _, dy, y: jnp.where(y > 0, dy, 0),
    "apply_gradient_descent": gradient_descent, "apply_momentum": momentum, "apply_adam": adam,
    "global_norm": lambda _, x: jnp.sqrt(jnp.sum(jnp.square(x))),
    "constant": lambda a: np.float32(a["value"]),
    "random_bits": drawn(lambda key, a: jax.random.bits(key, a["shape"], jnp.uint32)),
    "random_uniform": drawn(lambda key, a: jax.random.uniform(key, a["shape"])),
    "random_normal": drawn(lambda key, a: jax.random.normal(key, a["shape"])),
    "truncated_normal": drawn(lambda key, a: jax.random.truncated_normal(key, -2, 2, a["shape"])),
    "randint": drawn(lambda key, a: jax.random.randint(key, a["shape"], a["low"], a["high"])),
    "bernoulli": drawn(lambda key, a: jax.random.bernoulli(key, a.get("p", 0.5), a["shape"])),
    "dropout": drawn(dropout),
    "random_permutation": drawn(lambda key, a: jax.random.permutation(key, a["n"])),
}
OPS.update({name: lambda _, x, f=f: f(x) for name, f in UNARY.items()})
OPS.update({name: lambda _, x, y, f=f: f(x, y) for name, f in BINARY.items()})
OPS.update({name: reduction(f) for name, f in REDUCTIONS.items()})
OPS.update({name + "_grad": unary_grad(UNARY[name]) for name in ("gelu", "gelu_tanh", "silu")})
