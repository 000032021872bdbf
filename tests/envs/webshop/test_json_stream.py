import json

import pytest

from arl_gym.envs.webshop import json_stream
from arl_gym.envs.webshop.json_stream import list_items
from arl_gym.errors import DataError

ITEMS = [{"asin": "B1", "name": "Tasse à thé 🙂"}, {"n": [1, {"a": "]},{"}]}, {}]


@pytest.fixture(params=[1, 2, 3, 7, 1 << 20])
def _chunk(request, monkeypatch):
    monkeypatch.setattr(json_stream, "_CHUNK", request.param)


def write(tmp_path, text):
    path = tmp_path / "items.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.usefixtures("_chunk")
@pytest.mark.parametrize("indent", [None, 1])
def test_items_are_those_of_the_list_however_the_file_is_read(tmp_path, indent):
    path = write(tmp_path, json.dumps(ITEMS, ensure_ascii=False, indent=indent) + "\n")
    assert [item for _, item in list_items(path)] == ITEMS


@pytest.mark.usefixtures("_chunk")
def test_reading_goes_on_after_any_item(tmp_path):
    path = write(tmp_path, json.dumps(ITEMS, ensure_ascii=False))
    stops = [stop for stop, _ in list_items(path)]
    assert path.read_bytes()[: stops[0]].decode() == "[" + json.dumps(ITEMS[0], ensure_ascii=False)
    for k, stop in enumerate(stops):
        assert [item for _, item in list_items(path, stop)] == ITEMS[k + 1 :]


def test_an_empty_list_has_no_items(tmp_path):
    assert list(list_items(write(tmp_path, " [ ] "))) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected a list at byte 0"),
        ('{"B1": {}}', "expected a list at byte 0"),
        ('[{"a": 1}, {"b": ', r"no whole object \(Expecting value\) at byte 11"),
        ('[{"a": "é"}, {"b": "cut', "no whole object .* at byte 14"),
        ('[{"a": 1}', r"expected ',' or '\]' at byte 9"),
        ('[{"a": 1} {"b": 2}]', r"expected ',' or '\]' at byte 10"),
        ('[{"a": 1}, 2]', "expected an object at byte 11"),
        ("[1]", "expected an object at byte 1"),
        ('[{"a": 1},]', "expected an object at byte 10"),
        ("[{}] [{}]", "expected nothing after the list at byte 5"),
        (b'[{"a": "\xff"}]', "no UTF-8"),
        (b'[{"a": "\xc3', "no UTF-8"),
    ],
)
def test_another_file_is_one_error_that_names_the_byte(tmp_path, text, says):
    with pytest.raises(DataError, match=says):
        list(list_items(write(tmp_path, text)))


def test_a_broken_item_is_not_searched_for_to_the_end_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(json_stream, "_MAX_ITEM", 100)
    monkeypatch.setattr(json_stream, "_CHUNK", 50)
    path = write(tmp_path, '[{"a": nothing}' + ', {"b": 1}' * 1000)
    with pytest.raises(DataError, match=r"no whole object .* at byte 1;"):
        list(list_items(path))
