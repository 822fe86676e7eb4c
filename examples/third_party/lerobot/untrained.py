"""Make ACT checkpoints with their first, random weights, as LeRobot saves them: python untrained.py checkpoints"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.policies.factory import make_pre_post_processors

WIDTHS = {"small": 32, "large": 128}
OBSERVATIONS = {
    "observation.state": PolicyFeature(type=FeatureType.STATE, shape=(2,)),
    "observation.environment_state": PolicyFeature(type=FeatureType.ENV, shape=(16,)),
}
ACTIONS = {"action": PolicyFeature(type=FeatureType.ACTION, shape=(2,))}
TABLE = {"mean": 256.0, "std": 150.0, "min": 0.0, "max": 512.0}
"""PushT's table is 512 wide"""


def make(width: int, folder: Path) -> None:
    """The policy and its processors, which hold how numbers are scaled."""
    config = ACTConfig(
        input_features=OBSERVATIONS,
        output_features=ACTIONS,
        chunk_size=20,
        n_action_steps=20,
        dim_model=width,
        n_heads=4,
        dim_feedforward=2 * width,
        n_encoder_layers=2,
        use_vae=False,
        device="cpu",
        pretrained_backbone_weights=None,
        push_to_hub=False,
    )
    ACTPolicy(config).save_pretrained(folder)
    for processor in make_pre_post_processors(config, dataset_stats=scales()):
        processor.save_pretrained(folder)


def scales() -> dict[str, dict[str, torch.Tensor]]:
    features = {**OBSERVATIONS, **ACTIONS}
    return {
        name: {key: torch.full(feature.shape, value) for key, value in TABLE.items()}
        for name, feature in features.items()
    }


if __name__ == "__main__":
    torch.manual_seed(0)
    for name, width in WIDTHS.items():
        make(width, Path(sys.argv[1]) / name)
