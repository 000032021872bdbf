import json
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from arl_gym import make_chat_env
from arl_gym.core import pictures_of
from arl_gym.errors import ConfigError, DataError
from arl_gym.train import vision as module
from arl_gym.train.chat import ChatCodec
from arl_gym.train.model import load_model, save_model
from arl_gym.train.vision import Vision, check_pictures
from tests.train.pictures import noise, qwen3, qwen25, user


def vision(
    *, patch: int, merge: int, least: int, most: int = 1 << 24, model_patch: int | None = None
) -> Vision:
    """Return the vision of a model that is nothing but its configuration."""
    tower = SimpleNamespace(patch_size=model_patch or patch, spatial_merge_size=merge, temporal_patch_size=2)
    config = SimpleNamespace(vision_config=tower, image_token_id=9, video_token_id=7, model_type="qwen3_vl")
    size = {"shortest_edge": least, "longest_edge": most}
    return Vision(
        cast(Any, SimpleNamespace(config=config, model=None)),
        Qwen2VLImageProcessorPil(patch_size=patch, merge_size=merge, temporal_patch_size=2, size=size),
    )


QWEN25 = vision(patch=14, merge=2, least=56 * 56)
QWEN3 = vision(patch=16, merge=2, least=32 * 32)


@pytest.mark.parametrize(
    ("px", "qwen25", "qwen3"),
    # Rounded to a multiple of 28 and 32, halves to the even one: 112 is 3.5 x 32, which becomes 4 x 32.
    [
        *((96, 9, 9), (112, 16, 16), (128, 25, 16), (160, 36, 25)),
        *((168, 36, 25), (192, 49, 36), (224, 64, 49), (256, 81, 64)),
    ],
)
def test_a_square_picture_takes_a_token_for_28_or_32_pixels_a_side(px, qwen25, qwen3):
    assert QWEN25.n_tokens(noise(px, px)) == qwen25
    assert QWEN3.n_tokens(noise(px, px)) == qwen3


@pytest.mark.parametrize("v", [QWEN25, QWEN3, vision(patch=16, merge=1, least=256)])
def test_the_count_is_that_of_the_patches(v):
    sizes = [(20, 20), (31, 97), (96, 96), (640, 50), (333, 222), (17, 300), (500, 301)]
    for width, height in sizes:
        picture = noise(width, height)
        grid = v.pixels([picture])["image_grid_thw"][0]
        assert v.n_tokens(picture) == int(grid.prod()) // v._processor.merge_size**2


def test_small_pictures_are_enlarged_and_large_ones_made_smaller():
    v = vision(patch=16, merge=1, least=64 * 64, most=128 * 128)
    assert [v.n_tokens(noise(px, px)) for px in (16, 64, 96, 128, 512)] == [16, 16, 36, 64, 64]


def test_pixels_are_patches_of_each_picture_in_order():
    v = vision(patch=16, merge=1, least=256)
    white, black = noise(32, 16).point(lambda _: 255), noise(16, 48).point(lambda _: 0)
    out = v.pixels([white, black, white])
    assert out["image_grid_thw"].tolist() == [[1, 1, 2], [1, 3, 1], [1, 1, 2]]
    assert out["image_grid_thw"].dtype == torch.int64
    values = out["pixel_values"]
    assert (values.shape, values.dtype) == ((7, 3 * 2 * 16 * 16), torch.float32)
    bright = values.mean(1) > 0
    assert bright.tolist() == [True, True, False, False, False, True, True]


def test_no_pictures_have_no_patches():
    out = QWEN3.pixels([])
    assert out["pixel_values"].shape == (0, 1536)
    assert out["image_grid_thw"].shape == (0, 3)


def test_pictures_seen_lately_are_not_cut_again_and_the_oldest_are_forgotten(monkeypatch):
    v = vision(patch=16, merge=1, least=256)
    cut: list[int] = []
    processor = v._processor

    class Counting:
        def __getattr__(self, name):
            return getattr(processor, name)

        def __call__(self, pictures, **kwargs):
            cut.append(int(np.asarray(pictures[0])[0, 0, 0]))
            return processor(pictures, **kwargs)

    v._processor = Counting()
    a, b, c = (noise(16, 16).point(lambda _, n=n: n) for n in (1, 2, 3))
    # A picture of 16 x 16 keeps 768 bytes of itself and 1 x 1536 numbers of 4 bytes: 6,912.
    monkeypatch.setattr(module, "_CACHE_BYTES", 2 * 6912)
    first = v.pixels([a, b])
    again = v.pixels([a.copy(), b])
    assert cut == [1, 2]
    assert torch.equal(first["pixel_values"], again["pixel_values"])
    v.pixels([a, c, a])  # a was looked at after b, which goes
    assert cut == [1, 2, 3]
    v.pixels([b])
    assert cut == [1, 2, 3, 2]


def test_a_picture_that_is_nothing_but_an_edge_is_one_clear_error():
    with pytest.raises(DataError, match="a picture of 300 x 1 pixels cannot be read"):
        QWEN3.n_tokens(noise(300, 1))


def test_positions_run_along_the_rows_and_columns_of_a_picture():
    loaded = qwen3()
    v = loaded.vision
    assert v is not None
    # Two words, a picture of 2 rows and 3 columns, two words; the second row has no picture, and padding.
    ids = torch.tensor([[1, 2, *[v.image_id] * 6, 3, 4], [1, 2, 3, *[0] * 7]])
    mask = torch.tensor([[1] * 10, [1] * 3 + [0] * 7])
    out = v.positions(ids, mask, v.pixels([noise(48, 32)])["image_grid_thw"])
    assert (out.shape, out.dtype) == ((3, 2, 10), torch.int64)
    # The picture begins at 2 and takes as many places as its longer side has tokens.
    assert out[:, 0].tolist() == [
        [0, 1, 2, 2, 2, 2, 2, 2, 5, 6],
        [0, 1, 2, 2, 2, 3, 3, 3, 5, 6],
        [0, 1, 2, 3, 4, 2, 3, 4, 5, 6],
    ]
    assert out[:, 1].tolist() == [[0, 1, 2, *[0] * 7]] * 3


def test_padding_on_the_left_moves_no_position():
    v = qwen25().vision
    assert v is not None
    row = [1, *[v.image_id] * 4, 2]
    grid = v.pixels([noise(56, 56)])["image_grid_thw"]
    plain = v.positions(torch.tensor([row]), torch.ones(1, 6), grid)
    padded = v.positions(torch.tensor([[0, 0, *row]]), torch.tensor([[0, 0, *[1] * 6]]), grid)
    assert torch.equal(padded[:, :, 2:], plain)


def test_placeholders_must_be_as_many_as_the_pictures_take():
    pictures = [noise(64, 64), noise(32, 64)]  # 2 x 2 and 1 x 2 tokens
    check_pictures(QWEN3, [1, *[9] * 4, 2, 9, 9], pictures, "here")
    with pytest.raises(DataError, match="row 3: 2 pictures take 6 tokens, but the ids hold 5 placeholders"):
        check_pictures(QWEN3, np.array([1, *[9] * 5]), pictures, "row 3")


def test_banned_are_the_placeholders_of_images_and_videos():
    assert QWEN3.banned == (7, 9)


def test_a_processor_of_another_model_is_refused():
    with pytest.raises(ConfigError, match="image processor's patch_size is 14, the model's 16"):
        vision(patch=14, merge=2, least=784, model_patch=16)


def test_limits_that_leave_no_picture_are_refused():
    with pytest.raises(ConfigError, match="at least 4096 and at most 1024 pixels"):
        vision(patch=16, merge=2, least=4096, most=1024)


def test_a_saved_vision_model_reads_pictures_as_before(tmp_path):
    loaded = qwen3()
    save_model(tmp_path / "m", loaded.model, loaded.tokenizer, vision=loaded.vision)
    again = load_model(str(tmp_path / "m"), dtype="float32", seed=0)
    assert loaded.vision is not None
    assert again.vision is not None
    assert all(torch.equal(v, again.model.state_dict()[k]) for k, v in loaded.model.state_dict().items())
    assert again.tokenizer.chat_template == loaded.tokenizer.chat_template
    picture = noise(96, 60)
    before, after = loaded.vision.pixels([picture]), again.vision.pixels([picture])
    assert torch.equal(before["pixel_values"], after["pixel_values"])
    written = json.loads((tmp_path / "m" / "video_preprocessor_config.json").read_text())
    assert (written["video_processor_type"], written["merge_size"]) == ("Qwen3VLVideoProcessor", 1)


def test_the_limits_of_the_configuration_replace_those_of_the_folder_and_are_saved(tmp_path):
    loaded = qwen3()
    save_model(tmp_path / "m", loaded.model, loaded.tokenizer, vision=loaded.vision)
    large = load_model(str(tmp_path / "m"), dtype="float32", seed=0, image_min_pixels=192 * 192)
    assert large.vision is not None
    assert large.vision.n_tokens(noise(96, 96)) == 144
    save_model(tmp_path / "n", large.model, large.tokenizer, vision=large.vision)
    again = load_model(str(tmp_path / "n"), dtype="float32", seed=0)
    assert again.vision is not None
    assert again.vision.n_tokens(noise(96, 96)) == 144


def test_what_a_folder_says_of_videos_is_kept(tmp_path):
    loaded = qwen25()
    save_model(tmp_path / "m", loaded.model, loaded.tokenizer, vision=loaded.vision)
    video = {"video_processor_type": "Qwen2VLVideoProcessor", "fps": 3}
    (tmp_path / "m" / "video_preprocessor_config.json").write_text(json.dumps(video))
    again = load_model(str(tmp_path / "m"), dtype="float32", seed=0)
    save_model(tmp_path / "n", again.model, again.tokenizer, vision=again.vision)
    assert json.loads((tmp_path / "n" / "video_preprocessor_config.json").read_text()) == video


@pytest.mark.parametrize("content", [None, "{"])
def test_a_vision_model_needs_its_image_processor(tmp_path, content):
    loaded = qwen3()
    save_model(tmp_path / "m", loaded.model, loaded.tokenizer, vision=loaded.vision)
    file = tmp_path / "m" / "preprocessor_config.json"
    file.unlink() if content is None else file.write_text(content)
    with pytest.raises(ConfigError, match="cannot load the image processor of"):
        load_model(str(tmp_path / "m"), dtype="float32", seed=0)


def test_a_window_of_boards_comes_through_to_the_ids_in_order():
    """A board of 6 x 6 cells of 16 pixels is 36 tokens; the window of step 3 shows steps 1, 2 and 3."""
    loaded = qwen3()
    codec = ChatCodec(loaded.tokenizer, loaded.vision)
    env = make_chat_env("ARL/Sokoban-v0", obs_mode="image", tile_size=16, window=2)
    messages, _ = env.reset(seed=3)
    boards = pictures_of(messages)
    for k, action in enumerate(["up", "down", "left"], 1):
        messages = env.step(f"<think></think><action>{action}</action>")[0]
        shown = pictures_of(messages)
        boards.append(shown[-1])
        assert shown == boards[max(0, k - 2) :]
        ids = codec.encode_prompt(messages)
        assert loaded.vision is not None
        check_pictures(loaded.vision, ids, shown, "the prompt")
        assert ids.count(loaded.vision.image_id) == 36 * len(shown)


def test_plain_words_around_a_picture_stay_in_place():
    loaded = qwen3()
    ids = ChatCodec(loaded.tokenizer, loaded.vision).encode_prompt(user("a", noise(16, 16), "b"))
    assert loaded.tokenizer.decode(ids) == (
        "<|im_start|>user\na<|vision_start|><|image_pad|><|vision_end|>b<|im_end|>\n<|im_start|>assistant\n"
    )
