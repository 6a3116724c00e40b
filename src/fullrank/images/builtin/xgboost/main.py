"""Trains boosted trees to tell irises apart, each rank on its share of the flowers.

Options and environment are those of Kubeflow's XGBoost sample. Rank 0, the master, keeps the tracker through which all
ranks find each other, and takes part in the work.
"""

import argparse
import os
import warnings
from importlib.util import find_spec
from pathlib import Path
from socket import gethostbyname

import numpy as np
import xgboost as xgb
from xgboost import collective
from xgboost.tracker import RabitTracker

PATIENCE = 60  # tries to reach a tracker that is not up yet


def options():
    parser = argparse.ArgumentParser(description="XGBoost irises, distributed")
    parser.add_argument("--job_type", choices=["Train"], default="Train", help="what to do (default: Train)")
    parser.add_argument("--xgboost_parameter", default="objective:multi:softprob,num_class:3", help="name:value,… for XGBoost itself")
    parser.add_argument("--n_estimators", type=int, default=10, help="rounds of boosting (default: 10)")
    parser.add_argument("--learning_rate", type=float, default=0.1, help="step size of a round (default: 0.1)")
    parser.add_argument("--early_stopping_rounds", type=int, help="stop when so many rounds have not helped")
    parser.add_argument("--model_path", default="", help="where rank 0 writes the model")
    parser.add_argument("--model_storage_type", choices=["local"], default="local", help="where models are kept (default: local)")
    return parser.parse_args()


def parameters(args):
    """`objective:multi:softprob` is the objective multi:softprob."""
    pairs = (pair.partition(":") for pair in args.xgboost_parameter.split(",") if pair)
    return {**{name.strip(): value.strip() for name, _, value in pairs}, "learning_rate": args.learning_rate, "nthread": 1}


def flowers():
    """Scikit-learn's irises, every fifth held back for testing. Read without importing scikit-learn."""
    package = find_spec("sklearn")
    table = np.loadtxt(Path(package.submodule_search_locations[0], "datasets/data/iris.csv"), delimiter=",", skiprows=1)
    np.random.RandomState(1).shuffle(table)
    held = np.arange(len(table)) % 5 == 0
    return table[~held], table[held]


def matrix(table):
    return xgb.DMatrix(table[:, :-1], label=table[:, -1])


def accuracy(model, table):
    answers = model.predict(matrix(table))
    return float(np.mean((answers.argmax(axis=1) if answers.ndim > 1 else answers.round()) == table[:, -1]))


def train(args, rank, world):
    to_train, to_test = flowers()
    share, held = matrix(to_train[rank::world]), matrix(to_test)
    # Every rank sees the same flowers to test with: so all stop after the same round.
    model = xgb.train(
        parameters(args), share, args.n_estimators,
        evals=[(share, "train"), (held, "validation")], early_stopping_rounds=args.early_stopping_rounds, verbose_eval=rank == 0,
    )
    print(f"Rank {rank}: accuracy={accuracy(model, to_test):.4f}", flush=True)
    if rank == 0 and args.model_path:
        Path(args.model_path).parent.mkdir(parents=True, exist_ok=True)
        model.save_model(Path(args.model_path).with_suffix(".json"))


def main():
    args = options()
    warnings.filterwarnings("ignore", "(?s).*(Failed to connect|Retrying connection)")  # the tracker may come last
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if world == 1:
        train(args, rank, world)
        return
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    print(f"Rank {rank} of {world}, tracker at {host}:{port}", flush=True)
    tracker = None
    if rank == 0:
        tracker = RabitTracker(n_workers=world, host_ip=gethostbyname(host), port=port, sortby="task")
        tracker.start()
    meeting_point = {"dmlc_communicator": "rabit", "dmlc_tracker_uri": host, "dmlc_tracker_port": port}
    with collective.CommunicatorContext(**meeting_point, dmlc_task_id=f"{rank:05d}", dmlc_retry=PATIENCE):
        train(args, rank, world)
    if tracker:
        tracker.wait_for()


if __name__ == "__main__":
    main()
