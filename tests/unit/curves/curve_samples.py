"""What programs print and write while they train, in their own shapes with invented values; and the curves in it.

Shapes: rsl_rl 2.3 (runners/on_policy_runner.py) and 5.5 (utils/logger.py), rl_games 1.6 (common/a2c_common.py),
Stable-Baselines3 2.x (common/logger.py, EvalCallback, Monitor), RLinf 06b5f20c (utils/metric_utils.py), EmbodiChain
df06818a (rl/utils/trainer.py), ManiSkill dcb8721e (baselines/ppo/ppo.py), CleanRL 1.x, LeRobot 0.3, Spinning Up,
garage, RLlib.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable

from comborun.rules.curves.event_files import masked_checksum

_RSL_RL = """\
################################################################################
                      \x1b[1m Learning iteration {step}/1500 \x1b[0m                      \n
                       Computation: 35822 steps/s (collection: 2.600s, learning 0.144s)
             Mean action noise std: 1.00
          Mean value_function loss: 0.0186
                       Mean reward: {reward}
               Mean episode length: {length}
Episode_Reward/track_lin_vel_xy_exp: 0.0123
      Episode_Termination/time_out: 2.5
--------------------------------------------------------------------------------
                   Total timesteps: {total}
                    Iteration time: 2.74s
                      Time elapsed: 00:00:02
                               ETA: 01:08:33

"""
RSL_RL = "".join(_RSL_RL.format(step=at, reward=at - 0.5, length=20.5 + at, total=98304 * (at + 1)) for at in range(3))
_RSL_RL_5 = """\
################################################################################
\x1b[1m                         Learning iteration {step}/1500                          \x1b[0m \n
                        Total steps: {total} \n\
                   Steps per second: 35822 \n\
                    Collection time: 2.600s \n\
                    Mean value loss: 0.0186
              Mean extrinsic reward: 0.25
                        Mean reward: {reward}
                Mean episode length: {length}
                    Mean action std: 1.00
--------------------------------------------------------------------------------
                     Iteration time: 2.74s
                       Time elapsed: 0:00:02
                                ETA: 1:08:33

"""
RSL_RL_5 = "".join(
    _RSL_RL_5.format(step=at, reward=at - 0.5, length=20.5 + at, total=98304 * (at + 1)) for at in range(3)
)
RL_GAMES = """\
fps step: 112918 fps step and policy inference: 104337 fps total: 78179 epoch: 1/150 frames: 0
fps step: 112918 fps step and policy inference: 104337 fps total: 78179 epoch: 2/150 frames: 8192
saving next best rewards:  [294.18793]
=> saving checkpoint 'logs/rl_games/cartpole_direct/nn/last_cartpole_direct_ep_2_rew_294.18793.pth'
fps step: 112918 fps step and policy inference: 104337 fps total: 78179 epoch: 3/150 frames: 16384
saving next best rewards:  [300.5]
"""
SB3 = """\
Using cuda device
---------------------------------
| rollout/           |          |
|    ep_len_mean     | 22.3     |
|    ep_rew_mean     | 21.5     |
|    success_rate    | 0.25     |
| time/              |          |
|    fps             | 2016     |
|    iterations      | 1        |
|    time_elapsed    | 1        |
|    total_timesteps | 2048     |
---------------------------------
Eval num_timesteps=4000, episode_reward=123.40 +/- 5.60
Episode length: 200.00 +/- 0.00
Success rate: 50.00%
New best mean reward!
-----------------------------------------
| rollout/                |             |
|    ep_len_mean          | 26.1        |
|    ep_rew_mean          | 25.75       |
|    success_rate         | 0.5         |
| time/                   |             |
|    iterations           | 2           |
|    total_timesteps      | 4096        |
| train/                  |             |
|    approx_kl            | 0.008046303 |
|    value_loss           | 50.2        |
-----------------------------------------
"""
_RLINF = """\

╭────────────────────────────────────────────────────────────────────────────╮
├─────────────────────────────── Metric Table ───────────────────────────────┤
│ Global Step: {step:4d}/1000 │ Progress: ████░░░░ │   0.4%                           │
│ Elapsed: 01:02 │ ETA: 10:10:10 │ Step Time: 1.234s                          │
├─────────────────────────────── Environment ────────────────────────────────┤
│                                                                            │
│episode_len=80.000        │return={ret}          │success_once={once}         │
│                                                                            │
├─────────────────────────────── Evaluation ─────────────────────────────────┤
│num_trajectories=16       │return=0.900          │success_once=0.850         │
├──────────────────────────────── Rollout ───────────────────────────────────┤
│advantages_mean=0.100     │returns_mean=7.500    │rewards=0.010              │
├───────────────────────────── Training/Actor ───────────────────────────────┤
│actor/policy_loss=1.00e-04│actor/grad_norm=0.500 │                           │
╰────────────────────────────────────────────────────────────────────────────╯

"""
RLINF = _RLINF.format(step=4, ret="0.430", once="0.750") + _RLINF.format(step=5, ret="0.530", once="0.800")
EMBODICHAIN = """\
[default0]:[EmbodiChain INFO]: Total steps: 400 (iterations≈4, world_size=2)
[default0]:[EmbodiChain INFO]: Start training, total steps: 400
[default0]:[train] step=100 sps=980 avgReward(100)=nan avgLength(100)=nan
[default0]:[train] step=200 sps=980 avgReward(100)=0.250 avgLength(100)=60.0
[default0]:[EmbodiChain INFO]: Checkpoint saved: outputs/push/checkpoints/push_step_200.pt
[default0]:[train] step=300 sps=980 avgReward(100)=0.350 avgLength(100)=55.0
"""
MANISKILL = """\
Running training
####
Epoch: 1, global_step=0
Evaluating
Evaluated 800 steps resulting in 16 episodes
eval_success_once_mean=0.4375
eval_return_mean=12.25
eval_episode_len_mean=50.0
eval_reward_mean=0.245
model saved to runs/PickCube-v1__ppo__1__1700000000/ckpt_1.pt
SPS: 12345
Epoch: 26, global_step=1280000
Evaluating
eval_success_once_mean=0.875
eval_return_mean=24.5
eval_episode_len_mean=40.0
eval_reward_mean=0.6125
"""
CLEANRL = """\
global_step=4096, episodic_return=[12.5]
global_step=4096, episodic_return=[13.5]
SPS: 2100
global_step=8192, episodic_return=[20.]
"""
LEROBOT = """\
INFO 2026-01-02 10:10:10 ts/train.py:232 step:200 smpl:2K ep:12 epch:0.05 loss:1.234 grdn:15.600 lr:1.0e-05 updt_s:0.120
INFO 2026-01-02 10:10:20 ts/train.py:270 Eval policy at step 20000
INFO 2026-01-02 10:12:10 ts/train.py:285 step:20K smpl:160K ep:900 epch:4.1 ∑rwrd:12.300 success:50.0% eval_s:61.5
INFO 2026-01-02 10:22:10 ts/train.py:285 step:40K smpl:320K ep:1K epch:8.2 ∑rwrd:15.300 success:70.0% eval_s:61.5
"""
SPINUP = (
    "Epoch\tAverageEpRet\tStdEpRet\tEpLen\tTotalEnvInteracts\tTime\n"
    "0\t20.5\t3.2\t21.0\t4000\t2.5\n1\t30.5\t3.1\t31.0\t8000\t5.0\n"
)
GARAGE = (
    "Evaluation/AverageReturn,Evaluation/SuccessRate,TotalEnvSteps,Evaluation/Iteration\n"
    "-20.5,0.0,1000,0\n-10.5,0.25,2000,1\n"
)
PROGRESS = (
    "rollout/ep_len_mean,rollout/ep_rew_mean,time/total_timesteps,time/iterations,eval/mean_reward\n"
    "22.3,21.5,2048,1,\n,,4000,,123.4\n26.1,25.75,4096,2,\n27.0,26.0,6144,3,\n28.0,27.0,81"
)
LIGHTNING = "epoch,step,train_loss,val_success\n0,49,0.5,\n0,99,,0.25\n1,149,0.4,\n1,199,,0.5\n"
RLLIB = "".join(
    json.dumps(
        {
            "episode_reward_mean": 10.0 * at,
            "episode_len_mean": 100.0,
            "timesteps_total": 4000 * at,
            "training_iteration": at,
            "evaluation": {"episode_reward_mean": 12.0 * at},
            "hist_stats": {"episode_reward": [1.0, 2.0]},
            "done": False,
        }
    )
    + "\n"
    for at in (1, 2, 3)
)
MONITORS = {
    "0.monitor.csv": '#{"t_start": 1700000000.5, "env_id": "Reach-v2"}\nr,l,t,is_success\n'
    "-5.0,10,1.0,False\n-4.0,10,3.0,True\n",
    "1.monitor.csv": '#{"t_start": 1700000000.5, "env_id": "Reach-v2"}\nr,l,t,is_success\n-3.0,20,2.0,True\n',
}


def _varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def frame(data: bytes) -> bytes:
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", masked_checksum(head)) + data + struct.pack("<I", masked_checksum(data))


def event(step: int, tag: str, value: float, *, tensor: bool = False) -> bytes:
    """As torch's and tensorboardX's writers make it, or as TensorFlow 2's, which holds a tensor."""
    number = struct.pack("<f", value)
    held = _field(8, b"\x08\x01" + _field(2, b"") + _field(4, number)) if tensor else _varint(2 << 3 | 5) + number
    summary = _field(1, _field(1, tag.encode()) + held)
    return frame(_varint(1 << 3 | 1) + struct.pack("<d", 1.7e9) + _varint(2 << 3) + _varint(step) + _field(5, summary))


def events(points: Iterable[tuple[int, str, float]]) -> bytes:
    version = _varint(1 << 3 | 1) + struct.pack("<d", 1.7e9) + _field(3, b"brain.Event:2")
    return frame(version) + b"".join(event(*point) for point in points)
