"""Paddle's own check of its installation, on this node alone."""

import paddle

paddle.utils.run_check()
print("run check success, PaddlePaddle is installed correctly on this node :)", flush=True)
