"""Words by which documents of results name things: verdicts, steps, settings, what lies beside an evaluation."""

from __future__ import annotations

import re

SUCCESS_LISTS = ("successes", "success", "is_success", "episode_successes", "success_list", "task_success")
"""names of a list of verdicts"""
EPISODE_NAME = re.compile(
    r"(?:.*?[_.-])?(?:episodes?|eps?|trials?|rollouts?|demos?|traj|idx|i)?[_-]?(\d{1,6})(?:_res(?:ults?)?)?",
    re.IGNORECASE,
)
NO_EPISODE = re.compile(
    r"(?:.*[_.-])?(?:seed|run|attempt|rank|shard|v|version|step|ckpt|checkpoint|epoch|part|rebuild|task|gpu|job|set)s?[_-]?\d+"
    r"|.*\d[_.-]\d+",
    re.IGNORECASE,
)
STEPS = re.compile(r"(?i)(?:.*_)?(?:time_?)?(?:steps?|frames?|ticks?|transitions?|trajectory|trace|history)")
"""names of what lies within an episode that has a verdict of its own"""
ASIDE = re.compile(
    r"(?i)(?:.*[_.-])?(?:warm_?-?up|train(?:ing)?|calib(?:ration)?|debug|smoke|dry_?run|burn_?in|practice|demos?|expert|oracle"
    r"|baseline|reference|skipped|discarded|invalid|excluded|pre(?:view|roll)?|sanity|test_?run)s?(?:[_.-].*)?"
)
"""names of what lies beside an evaluation and is none of it"""
SETTINGS = re.compile(
    r"(?i)(?:.*[_.-])?(?:conf(?:ig(?:uration)?)?|cfg|setting|option|opt|arg(?:ument)?|(?:h|hyper)?param(?:eter)?|hydra|wandb"
    r"|notif(?:y|ication)|alert|callback|hook|log(?:ging|ger)?|criteri(?:on|a)|condition|termination|threshold|tolerance"
    r"|reward|weight|limit)s?(?:[_.-].*)?"
)
"""names of what a program was told, where `success` is no outcome"""
OUTCOMES = re.compile(
    r"(?i)(?:.*[_.-])?(?:results?|res|outcomes?|episodes?|eps?|trials?|rollouts?|traj\w*|demos?|eval(?:uation)?s?|metrics?|info"
    r"|stats?|summary|report)(?:[_.-]?\d+)?"
)
"""names by which an object with a verdict and nothing else is an episode"""
