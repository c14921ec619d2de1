"""usage: safetensors_interop.py IN OUT

Reads IN with Python's safetensors, doubles every tensor (bool: negates it) and writes OUT with
another order of names; metadata come along with "python" added. safetensors_interop_test.cpp
writes IN and reads OUT.
"""
import sys

import numpy
import safetensors


def values_of(view):
    if view["dtype"] == "BF16":  # numpy has none: the upper half of an f32
        wide = numpy.frombuffer(view["data"], numpy.uint16).astype(numpy.uint32) << 16
        return wide.view(numpy.float32).reshape(view["shape"])
    names = {"F32": "f4", "F64": "f8", "F16": "f2", "I32": "i4", "I64": "i8", "U8": "u1", "BOOL": "?"}
    return numpy.frombuffer(view["data"], names[view["dtype"]]).reshape(view["shape"])


def changed(view):
    values = values_of(view)
    if view["dtype"] == "BOOL":
        return ~values
    if view["dtype"] == "BF16":
        return ((values * 2).view(numpy.uint32) >> 16).astype(numpy.uint16)
    return values * values.dtype.type(2)


def main(source, target):
    with open(source, "rb") as file:
        views = safetensors.deserialize(file.read())
    with safetensors.safe_open(source, framework="numpy") as file:
        metadata = {**file.metadata(), "python": "yes"}
    types = {"F32": "float32", "F64": "float64", "F16": "float16", "BF16": "bfloat16",
             "I32": "int32", "I64": "int64", "U8": "uint8", "BOOL": "bool"}
    kept, specs = [], {}
    for name, view in reversed(sorted(views)):
        array = numpy.ascontiguousarray(changed(view))
        kept.append(array)
        specs[name] = safetensors.TensorSpec(dtype=types[view["dtype"]], shape=view["shape"],
                                             data_ptr=array.ctypes.data, data_len=array.nbytes)
    safetensors.serialize_file(specs, target, metadata)


main(*sys.argv[1:])
