"""Text through the twin and lane processes, on a small random model: many at once, and what goes wrong."""

import contextlib
import json
import os
import random
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cuelight import LLM, Finish, Stream
from cuelight.errors import (
    ChatTemplateError,
    CuelightError,
    DeviceClosed,
    InvalidArgument,
    LaneError,
    NoKvCredit,
    PromptTooLong,
    Timeout,
    UnknownDevice,
    UnknownModel,
    UnknownTier,
)

from .checks import WAIT_S, assert_at_rest, assert_identical, kinds, until, vanish

TIE = 2e-4


def open_llm(model: Path, lanes: int = 2) -> LLM:
    return LLM.open(model, lanes=lanes, kv_positions=4096, layers_per_stage=1, threads=1)


@pytest.fixture(scope="module")
def llm(model: Path) -> Iterator[LLM]:
    with open_llm(model) as llm:
        yield llm


def children() -> set[str]:
    """Processes of this one that run."""
    found: set[str] = set()
    for task in Path("/proc/self/task").iterdir():
        # A thread may end between the two looks.
        with contextlib.suppress(FileNotFoundError):
            found.update((task / "children").read_text().split())
    return found


def segments() -> set[Path]:
    """Shared segments of this process."""
    return set(Path("/dev/shm").glob(f"cuelight-{os.getpid()}-*"))


def make_prompt(chance: random.Random) -> str:
    return "".join(chance.choices("abcdefgh,.!?", k=chance.randrange(1, 180)))


def assert_same(stream: Stream, alone: Stream) -> None:
    """The tokens that came are those it gives alone, up to where rounding may decide."""
    assert stream.request.prompt_tokens == alone.request.prompt_tokens
    for token, other in zip(stream.request.received, alone.request.received, strict=False):
        if token.token != other.token:
            assert abs(token.logprob - other.logprob) < TIE
            return
        assert token.logprob == pytest.approx(other.logprob, abs=1e-3)


def test_a_text_is_the_same_alone_and_among_many_that_join_leave_and_are_cancelled(llm: LLM) -> None:
    chance = random.Random(1)
    prompts = [make_prompt(chance) for _ in range(24)]
    alone = [llm.generate(prompt, 24) for prompt in prompts[:1]]
    for prompt in prompts[1:]:
        alone[-1].text(WAIT_S)
        alone.append(llm.generate(prompt, 24))
    alone[-1].text(WAIT_S)
    assert_at_rest(llm.device)

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(12):
            index = chance.randrange(len(prompts))
            stream = llm.generate(prompts[index], 24, tier=chance.randrange(4))
            if chance.random() < 0.4:
                for _, _ in zip(range(chance.randrange(8)), stream.request.tokens(WAIT_S), strict=False):
                    pass
                stream.cancel()
            stream.text(WAIT_S)
            assert_same(stream, alone[index])
            if stream.finish is not Finish.CANCELLED:
                assert len(stream.request.received) == len(alone[index].request.received)
                assert stream.finish is alone[index].finish

    with ThreadPoolExecutor(16) as pool:
        for done in [pool.submit(work, seed) for seed in range(16)]:
            done.result(4 * WAIT_S)
    assert_at_rest(llm.device)
    status = llm.device.status()
    assert status.counters.admitted == status.counters.retired == 24 + 16 * 12
    assert all(lane.passes for lane in status.lanes)


def test_a_text_is_the_same_from_the_prefix_cache_also_while_blocks_are_evicted(llm: LLM, model: Path) -> None:
    chance = random.Random(2)
    stem = "".join(chance.choices("abcdefgh", k=150))
    prompts = [stem[:length] + tail for length in (64, 90, 128, 150) for tail in ("x", "yz", ",.!?" * 9)]
    alone = []
    for prompt in prompts:
        # The cache is per lane group; nothing of this one is reused.
        llm.device._room._pools[0].forget()
        llm.device._room._pools[1].forget()
        alone.append(llm.generate(prompt, 40))
        alone[-1].text(WAIT_S)
        assert alone[-1].request.start == 0
    starts = []
    with LLM.open(model, kv_positions=64 * 9, layers_per_stage=1, threads=1) as small, ThreadPoolExecutor(4) as pool:

        def work(seed: int) -> None:
            chance = random.Random(seed)
            for _ in range(10):
                index = chance.randrange(len(prompts))
                stream = small.generate(prompts[index], 40)
                if chance.random() < 0.3:
                    for _, _ in zip(range(chance.randrange(20)), stream.request.tokens(WAIT_S), strict=False):
                        pass
                    stream.cancel()
                stream.text(WAIT_S)
                starts.append(stream.request.start)
                assert_same(stream, alone[index])

        for done in [pool.submit(work, seed) for seed in range(4)]:
            done.result(4 * WAIT_S)
        assert_at_rest(small.device)
    assert {0, 64, 128} == set(starts)


def test_pieces_add_up_and_can_be_read_again(llm: LLM) -> None:
    stream = llm.generate("cde", 20)
    pieces = list(stream.pieces(WAIT_S))
    tokens = [token.token for token in stream.request.received if token.finish is not Finish.END_OF_TEXT]
    assert "".join(pieces) == llm.decode(tokens) == stream.text(WAIT_S)
    assert all(pieces)
    metrics = stream.metrics
    assert (metrics.prompt_tokens, metrics.new_tokens) == (3, len(stream.request.received))
    assert metrics.ttft_s is not None
    assert metrics.ttft_s > 0
    assert len(metrics.itl_s) == metrics.new_tokens - 1
    assert set(metrics.to_dict()) == {"prompt_tokens", "new_tokens", "ttft_s", "median_itl_s", "max_itl_s"}


def test_new_tokens_are_what_the_context_leaves_unless_told_otherwise(llm: LLM) -> None:
    stream = llm.generate("c" * 240)
    assert stream.request.max_new_tokens == llm.device.context - 240 == 16
    stream.text(WAIT_S)


def test_a_seed_decides_what_is_drawn(llm: LLM) -> None:
    streams = [llm.generate("cde", 30, temperature=2.0, seed=seed) for seed in (5, 5, 6)]
    same, again, other = (stream.text(WAIT_S) for stream in streams)
    assert same == again != other
    assert llm.generate("cde", 1, temperature=1.0).seed != llm.generate("cde", 1, temperature=1.0).seed


def test_samples_are_those_that_their_seeds_give_alone(llm: LLM) -> None:
    prompt = "abcd,efgh." * 16
    samples = llm.generate_samples(prompt, 4, 20, temperature=1.5, seed=70)
    texts = [sample.text(WAIT_S) for sample in samples]
    assert [sample.seed for sample in samples] == [70, 71, 72, 73]
    assert [sample.request.start for sample in samples] == [0, 128, 128, 128]
    for sample, text in zip(samples, texts, strict=True):
        assert llm.generate(prompt, 20, temperature=1.5, seed=sample.seed).text(WAIT_S) == text
    assert len(set(texts)) > 1
    assert_at_rest(llm.device)


def test_filters_and_alternatives_reach_the_lane_and_come_back(llm: LLM) -> None:
    plain = llm.generate("cde", 12, top_logprobs=20)
    plain.text(WAIT_S)
    for token in plain.request.received:
        assert len(token.alternatives) == 20
        best, logprob = token.alternatives[0]
        assert best == token.token
        assert logprob == pytest.approx(token.logprob, abs=1e-6)
        assert sorted(token.alternatives, key=lambda pair: -pair[1]) == list(token.alternatives)
    second = plain.request.received[0].alternatives[1][0]
    forced = llm.generate("cde", 4, logit_bias={second: 100.0}, temperature=1.0, top_k=1)
    forced.text(WAIT_S)
    assert {token.token for token in forced.request.received} == {second}
    assert forced.request.received[0].alternatives == ()
    # The logarithm is of the model's own probability, whatever the bias.
    assert forced.request.received[0].logprob == pytest.approx(plain.request.received[0].alternatives[1][1], abs=1e-4)
    narrow = llm.generate("cde", 12, temperature=5.0, seed=3, top_k=1)
    narrow.text(WAIT_S)
    assert [token.token for token in narrow.request.received] == [token.token for token in plain.request.received]


def test_a_model_s_own_settings_hold_once_until_a_request_has_its_own(model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "model")
    own = {"do_sample": True, "temperature": 1.5, "top_k": 1, "repetition_penalty": 1.6}
    (tmp_path / "model" / "generation_config.json").write_text(json.dumps(own))
    with open_llm(model, lanes=1) as plain, open_llm(tmp_path / "model", lanes=1) as configured:

        def tokens(llm: LLM, **arguments: float) -> list[int]:
            stream = llm.generate("cdcd", 20, **arguments)  # type: ignore[arg-type]
            stream.text(WAIT_S)
            return [token.token for token in stream.request.received]

        penalized = tokens(plain, repetition_penalty=1.6)
        assert penalized != tokens(plain)
        # Twice the penalty would be 2.56.
        assert penalized != tokens(plain, repetition_penalty=2.56)
        assert tokens(configured) == tokens(configured, repetition_penalty=1.6) == penalized
        assert tokens(configured, repetition_penalty=1.0) == tokens(plain)
        wide = tokens(configured, top_k=0, seed=4)
        assert wide == tokens(plain, repetition_penalty=1.6, temperature=1.5, seed=4) != penalized


def test_lanes_run_in_bfloat16_when_asked_to(model: Path, llm: LLM) -> None:
    with LLM.open(model, kv_positions=1024, dtype="bfloat16", threads=1) as half:
        streams = [one.generate("cde", 1, top_logprobs=20) for one in (half, llm)]
        for stream in streams:
            stream.text(WAIT_S)
        ours, exact = (dict(stream.request.received[0].alternatives) for stream in streams)
    shared = ours.keys() & exact.keys()
    assert len(shared) >= 15
    apart = [abs(ours[token] - exact[token]) for token in shared]
    # Rounded, so not the same, but no other model.
    assert 1e-5 < max(apart) < 0.5


@pytest.mark.parametrize(
    ("prompt", "arguments", "error"),
    [
        ("a" * 250, {"max_new_tokens": 7}, PromptTooLong),
        ("a" * 256, {}, PromptTooLong),
        ("", {}, InvalidArgument),
        ("a", {"tier": 4}, UnknownTier),
        ("a", {"max_new_tokens": 0}, InvalidArgument),
        ("a", {"temperature": -1.0}, InvalidArgument),
        ("a", {"top_p": 0.0}, InvalidArgument),
        ("a", {"top_q": 1}, InvalidArgument),
        ("a", {"logit_bias": dict.fromkeys(range(301), 1.0)}, InvalidArgument),
        ([{"role": "user", "content": "Hello"}], {}, ChatTemplateError),
    ],
)
def test_what_cannot_be_right_is_refused_in_a_sentence(
    llm: LLM, prompt: str, arguments: dict[str, Any], error: type[CuelightError]
) -> None:
    with pytest.raises(error) as refusal:
        llm.generate(prompt, **arguments)
    assert str(refusal.value).endswith(".")
    assert "\n" not in str(refusal.value)
    assert_at_rest(llm.device)


def test_a_lane_that_refuses_one_request_goes_on_with_the_others(llm: LLM) -> None:
    good = llm.generate("cde", 20)
    bad = llm.device.submit([1000], 5, group=good.request.group)
    with pytest.raises(LaneError, match="unknown token"):
        bad.result(WAIT_S)
    good.text(WAIT_S)
    assert_at_rest(llm.device)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"model": "no-such-model"}, UnknownModel),
        ({"device": "pcie:0000:65:00.0"}, UnknownDevice),
        ({"context": 257}, InvalidArgument),
        ({"dtype": "float16"}, InvalidArgument),
        ({"lanes": 0}, InvalidArgument),
        ({"lanes": 9}, InvalidArgument),
        ({"layers_per_stage": 0}, InvalidArgument),
    ],
)
def test_what_cannot_be_opened_is_refused_in_a_sentence(
    model: Path, arguments: dict[str, object], error: type[CuelightError]
) -> None:
    with pytest.raises(error) as refusal:
        LLM.open(**{"model": model} | arguments)  # type: ignore[arg-type]
    assert str(refusal.value).endswith(".")


def test_a_lane_that_cannot_load_its_weights_leaves_nothing_behind(model: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(model, broken)
    weights = next(broken.glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1000])
    before = children(), segments()
    with pytest.raises(LaneError, match=r"\.safetensors"):
        open_llm(broken)
    assert (children(), segments()) == before


def test_a_request_larger_than_the_cache_is_refused(model: Path) -> None:
    with LLM.open(model, kv_positions=64, layers_per_stage=1, threads=1) as llm:
        with pytest.raises(PromptTooLong):
            llm.generate("a" * 60, 5)
        held = llm.generate("a" * 4, 60)
        with pytest.raises(NoKvCredit):
            llm.generate("a", 1, timeout_s=0)
        held.cancel()
        llm.generate("a", 1, timeout_s=WAIT_S).text(WAIT_S)
        assert_at_rest(llm.device)


def test_a_lane_that_stands_still_costs_no_more_than_a_timeout(model: Path) -> None:
    with open_llm(model, lanes=1) as llm:
        stream = llm.generate("cde", 200)
        next(stream.request.tokens(WAIT_S))
        os.kill(llm.lanes[0].pid, signal.SIGSTOP)
        try:
            with pytest.raises(Timeout):
                # What came before it stood still is read first.
                list(stream.pieces(0.5))
        finally:
            os.kill(llm.lanes[0].pid, signal.SIGCONT)
        stream.text(WAIT_S)
        assert_at_rest(llm.device)


def test_generations_go_on_when_their_lane_is_killed(llm: LLM, model: Path) -> None:
    prompts = ["cde" * (1 + turn) for turn in range(6)]
    undisturbed = [llm.generate(prompt, 200, **kinds(turn)) for turn, prompt in enumerate(prompts)]
    for stream in undisturbed:
        stream.text(WAIT_S)
    with open_llm(model) as fresh:
        streams = [fresh.generate(prompt, 200, **kinds(turn)) for turn, prompt in enumerate(prompts)]
        pids = [lane.pid for lane in fresh.lanes]
        until(lambda: len(streams[0].request.received) > 20)
        before = [stream.request.received for stream in streams]
        os.kill(pids[0], signal.SIGKILL)
        for stream, early, other in zip(streams, before, undisturbed, strict=True):
            assert_identical(stream, other)
            assert stream.request.received[: len(early)] == early
        lost = [stream.request for stream in streams if stream.request.losses]
        assert lost
        assert {request.group for request in lost} == {0}
        until(lambda: fresh.lanes[0].pid != pids[0])
        assert fresh.lanes[1].pid == pids[1]
        assert_at_rest(fresh.device)


def test_generations_go_on_when_their_device_is_lost(llm: LLM, model: Path) -> None:
    prompts = ["cde" * (1 + turn) for turn in range(4)]
    undisturbed = [llm.generate(prompt, 200, **kinds(turn)) for turn, prompt in enumerate(prompts)]
    for stream in undisturbed:
        stream.text(WAIT_S)
    before = children()
    with open_llm(model) as fresh:
        streams = [fresh.generate(prompt, 200, **kinds(turn)) for turn, prompt in enumerate(prompts)]
        pids = [lane.pid for lane in fresh.lanes]
        until(lambda: len(streams[0].request.received) > 20)
        # A lane that stands still as well must not keep the fresh device from getting another.
        os.kill(pids[0], signal.SIGSTOP)
        vanish(fresh.device.transport)
        for stream, other in zip(streams, undisturbed, strict=True):
            assert_identical(stream, other)
        assert any(stream.request.losses for stream in streams)
        assert not set(pids) & {lane.pid for lane in fresh.lanes}
        assert_at_rest(fresh.device)
    assert children() == before


def test_a_lane_that_cannot_start_again_is_given_up(model: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(model, broken)
    weights = next(broken.glob("*.safetensors"))
    before = children()
    with open_llm(broken) as llm:
        streams = [llm.generate("cde", 200) for _ in range(4)]
        for stream in streams:
            next(stream.request.tokens(WAIT_S))
        weights.write_bytes(weights.read_bytes()[:-1000])
        os.kill(llm.lanes[0].pid, signal.SIGKILL)
        for stream in streams:
            if stream.request.group:
                stream.text(WAIT_S)
            else:
                with pytest.raises(LaneError, match=r"\.safetensors"):
                    stream.text(2 * WAIT_S)
        assert_at_rest(llm.device)
        assert llm.generate("cde", 2).request.group == 1
        with pytest.raises(LaneError, match=r"\.safetensors"):
            llm.device.submit([5], 2)
    assert children() == before


def test_closing_while_a_lane_starts_again_leaves_nothing_behind(model: Path) -> None:
    llm = open_llm(model, lanes=1)
    pid = llm.lanes[0].pid
    stream = llm.generate("cde", 200)
    os.kill(pid, signal.SIGKILL)
    until(lambda: llm.lanes[0].pid != pid)
    llm.close()
    with pytest.raises(DeviceClosed):
        stream.text(WAIT_S)
    assert not llm.device.segment.path.exists()
    assert llm.lanes[0]._process.poll() is not None


def test_closing_ends_what_is_under_way_and_the_lanes(model: Path) -> None:
    llm = open_llm(model)
    stream = llm.generate("cde", 240)
    next(stream.request.tokens(WAIT_S))
    llm.close()
    with pytest.raises(DeviceClosed):
        stream.text(WAIT_S)
    with pytest.raises(DeviceClosed):
        llm.generate("cde", 1)
    assert [lane._process.poll() for lane in llm.lanes] == [0, 0]
    assert not llm.device.segment.path.exists()
    llm.close()
