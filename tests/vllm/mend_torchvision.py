"""Make torchvision importable beside a torch without CUDA.

vLLM's Qwen-VL models read pictures with torchvision. The package index has its CUDA build only, whose
compiled operators do not load without CUDA, and then `import torchvision` fails at the first of them that it
describes. Reading pictures needs none of them: declaring the two is enough. Does nothing where torchvision
can be imported already.

    .venv-vllm/bin/python tests/vllm/mend_torchvision.py
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

_DECLARATIONS = """

if not _has_ops():  # declared, not defined: calling them is still an error
    _declared = torch.library.Library("torchvision", "DEF")
    for _name in ("nms", "qnms"):
        _declared.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""


def mend() -> None:
    """Append the declarations to the installed package.

    Raises:
        SystemExit: If torchvision is not installed, or still cannot be imported.
    """
    spec = find_spec("torchvision")
    if spec is None or spec.origin is None:
        sys.exit("torchvision is not installed: pip install --no-deps torchvision==0.28.0")
    if _imports():
        return
    extension = Path(spec.origin).with_name("extension.py")
    source = extension.read_text(encoding="utf-8")
    if _DECLARATIONS not in source:
        extension.write_text(source + _DECLARATIONS, encoding="utf-8")
    if not _imports():
        sys.exit(f"{spec.origin} cannot be imported even with its operators declared")


def _imports() -> bool:
    return subprocess.run([sys.executable, "-c", "import torchvision"], capture_output=True).returncode == 0


if __name__ == "__main__":
    mend()
