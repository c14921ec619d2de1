#!/usr/bin/env python3
"""Sets Ballast beside other frameworks: same workloads, same inputs, one run, equal threads.

  bench/compare.py [--workload all] [--peer numpy,jax] [--out build/bench/results.jsonl]
  bench/compare.py --compare build/bench/results.jsonl

The other frameworks are run by peers.py in the folder --peers (default $BALLAST_PEERS, else
../shared/peers); those whose environment is not installed are left out. Prints peers.py's table of
minimum milliseconds and how each mode of Ballast stands to the reference.
"""
import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODES = ["eager", "jit", "sink"]
OURS = ["ballast-" + mode for mode in MODES]


def load_peers(folder):
    path = os.path.join(folder, "peers.py")
    if not os.path.exists(path):
        sys.exit(f"compare.py: no {path}; name its folder with --peers or $BALLAST_PEERS")
    spec = importlib.util.spec_from_file_location("peers", path)
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    module.PEERS.update({name: ("", {}, {}) for name in OURS})
    return module


def is_installed(peers, name):
    python = os.path.join(peers.PEERS[name][0], "bin", "python")
    package = name.split("-")[0]
    return os.path.exists(python) and not subprocess.run(
        [python, "-c", f"import importlib.util as u, sys; sys.exit(not u.find_spec('{package}'))"]
    ).returncode


def run_ours(mode, workload, inputs, args):
    """As peers.py runs a peer: caches start empty, threads and cores are limited."""
    with tempfile.TemporaryDirectory(prefix="ballast.") as cache:
        env = dict(os.environ, XDG_CACHE_HOME=cache, POCL_CACHE_DIR=cache + "/pocl",
                   POCL_MAX_PTHREAD_COUNT=str(args.threads), POCL_CPU_MAX_CU_COUNT=str(args.threads))
        env.pop("BALLAST_CACHE_DIR", None)
        os.makedirs(cache + "/pocl")
        cores = sorted(os.sched_getaffinity(0))[: args.threads]
        command = [args.program, "--mode", mode, "--workload", workload, "--inputs",
                   os.path.join(inputs, workload), "--iters", str(args.iters), "--budget-s",
                   str(args.budget_s), "--threads", str(args.threads)]
        done = subprocess.run(command, env=env, capture_output=True, text=True,
                              preexec_fn=lambda: os.sched_setaffinity(0, cores))
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    error = (done.stderr.strip() or f"exit {done.returncode}")[-400:]
    return {"peer": "ballast-" + mode, "workload": workload, "threads": args.threads, "error": error}


def measure(peers, args):
    ours = subprocess.run([args.program, "--list"], check=True, capture_output=True, text=True)
    known = [w for w in peers.WORKLOADS if w in ours.stdout.split()]
    chosen = known if args.workload == "all" else args.workload.split(",")
    others = [p for p in args.peer.split(",") if p and is_installed(peers, p)]
    os.makedirs(os.path.dirname(os.path.abspath(args.out)), exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ballast.") as inputs, open(args.out, "w") as out:
        subprocess.run([sys.executable, "-B", peers.__file__, "--dump", inputs, "--workload",
                        ",".join(chosen)], check=True)
        child = argparse.Namespace(threads=args.threads, iters=args.iters, budget_s=args.budget_s,
                                   timeout_s=600, verbose=False, quiet_skips=True)
        for workload in chosen:
            rows = [peers.run_child(peer, workload, child) for peer in others]
            rows += [run_ours(mode, workload, inputs, args) for mode in MODES]
            for row in filter(None, rows):
                print(json.dumps(row), file=out, flush=True)
                print(f"{row['peer']:>14} {workload:<22}",
                      row.get("min_ms", row.get("skipped", row.get("error"))), file=sys.stderr)


def print_ratios(peers, path, reference):
    with open(path) as lines:
        rows = [json.loads(line) for line in lines if line.startswith("{")]
    times = {(r["peer"], r["workload"]): r["min_ms"] for r in rows if "min_ms" in r}
    print(f"\nBallast's time over {reference}'s (below 1: Ballast is faster)\n")
    print("workload | " + " | ".join(OURS))
    print("---|---|---|---")
    for workload in peers.WORKLOADS:
        if (reference, workload) not in times:
            continue
        cells = [times.get((name, workload)) for name in OURS]
        ratios = [f"{c / times[(reference, workload)]:.2f}" if c else "" for c in cells]
        print(f"{workload} | " + " | ".join(ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default=os.environ.get(
        "BALLAST_PEERS", os.path.join(ROOT, "..", "shared", "peers")))
    parser.add_argument("--peer", default="numpy,jax", help="those to run beside Ballast")
    parser.add_argument("--reference", default="jax", help="what the ratios are to")
    parser.add_argument("--program", default=os.path.join(
        ROOT, "build", "release", "bench", "ballast_workloads"))
    parser.add_argument("--workload", default="all")
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "bench", "results.jsonl"))
    parser.add_argument("--iters", type=int, default=30)
    parser.add_argument("--budget-s", type=float, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compare", help="only print the tables of an earlier run")
    args = parser.parse_args()
    peers = load_peers(args.peers)
    if not args.compare:
        measure(peers, args)
    bad = peers.compare(args.compare or args.out)
    print_ratios(peers, args.compare or args.out, args.reference)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
