"""What `combo set` says of a value before it asks a host."""

from __future__ import annotations

import pytest

from comborun.api.steering import checked_settings
from comborun.errors import UserError


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("parallel", "0", "`parallel` can't be `0`"),
        ("limits.parallel", "99999999", "`parallel` can't be `99999999`"),
        ("use_gpus", "0,0", "`use_gpus` can't be `0,0`"),
        ("stagger", "3", "while a run goes on"),
    ],
)
def test_a_value_that_a_key_never_takes_is_not_refused_because_the_run_goes_on(key: str, value: str, why: str) -> None:
    with pytest.raises(UserError) as refused:
        checked_settings({key: value})
    assert why in str(refused.value)
