"""Lines that are known to be slow, found by their text or by what they call in libraries."""

from __future__ import annotations

from dataclasses import replace

import pytest
from advised import at, given, with_lines
from sessions import Written, facts_of

from rlprof.analysis.advice.line_patterns import line_patterns

MS = 1_000_000


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """Per iteration 60 ms of env_step, 30 of loss inside a phase with 10 of its own; four seconds in all."""
    written = Written(tmp_path_factory.mktemp("lines"))
    for _ in range(40):
        with written.fake.profiler.iteration():
            written.work("env_step", 60 * MS)
            with written.fake.profile("update"):
                written.fake.tick(10 * MS)
                written.work("loss", 30 * MS)
    return facts_of(written.end())


def found_in(facts, *lines, operation="env_step"):
    return line_patterns(with_lines(facts, {operation: lines}))


def in_loop_of_main(facts):
    """As if the training loop were in `main`."""
    return replace(facts, code=replace(facts.code, outer_loops={"loss": (at("train.py:99", "f()", 1.0, "main"),)}))


SLOW = [
    ("copying", "target = copy.deepcopy(net)"),
    ("copying", "self.frames.append(frame.copy())"),
    ("growing_container", "self.obs = np.concatenate([self.obs, obs[None]])"),
    ("growing_container", "data = torch.cat((data, new))"),
    ("growing_container", "rewards = np.append(rewards, reward)"),
    ("restacking", "batch = np.stack([self.data[i] for i in indices])"),
    ("restacking", "states = torch.stack(self.states)"),
    ("per_item_conversion", "x = torch.tensor([float(v) for v in observation])"),
    ("per_item_conversion", "values.append(float(v))"),
    ("logging_in_loop", "print(step, loss)"),
    ("logging_in_loop", "writer.add_scalar('loss', loss.item(), step)"),
    ("item_in_loop", "losses.append(loss.item())"),
    ("logging_in_loop", "self.file.flush()"),
    ("growing_container", "n = self.visited.count(cell)"),
    ("growing_container", "if state in self.seen:"),
    ("growing_container", "self.memory.pop(0)"),
    ("growing_container", "table = pd.concat([table, row])"),
    ("growing_container", "best = sorted(self.scores, key=lambda one: one.value)[:10]"),
    ("copying", "self.stack = np.roll(self.stack, -1, axis=0)"),
    ("per_element_call", "reward = np.vectorize(shape)(obs)"),
    ("per_element_call", "for _, row in frame.iterrows():"),
    ("per_item_conversion", "obs = np.array(self.frames, dtype=np.float32)"),
    ("file_in_loop", "with open(self.path) as file:"),
    ("file_in_loop", "config = json.load(file)"),
    ("logging_in_loop", "with open('log.csv', 'a') as file:"),
    ("logging_in_loop", "plt.savefig('reward.png')"),
    ("logging_in_loop", "self.table.to_csv(self.path)"),
    ("weighted_sampling", "rows = np.random.choice(len(self), batch, p=weights)"),
    ("weighted_sampling", "p = self.priorities[: self.size] ** self.alpha"),
    ("system_call_in_loop", "used = psutil.Process().memory_info().rss"),
    ("system_call_in_loop", "subprocess.run(['nvidia-smi'])"),
    ("growing_container", "self.mean = np.concatenate(self.history).mean(0)"),
    ("file_in_loop", "net.load_state_dict(torch.load(WEIGHTS))"),
]


@pytest.mark.parametrize(("rule", "source"), SLOW)
def test_a_slow_line_is_named_with_its_place_and_its_gain(facts, rule, source):
    (found,) = found_in(facts, at("train.py:17", source, 0.5, "collect"), at("train.py:18", "work()", 0.5))
    finding = given(found, rule, share=0.6)  # with the samples' error, never more than all of env_step
    assert finding.place.where == "train.py:17"
    assert "train.py:17" in finding.cause
    assert "30.0%" in finding.cause
    assert finding.operations == ("env_step",)
    assert 1.1 < finding.gain.estimate <= 1 / (1 - 0.3)


@pytest.mark.parametrize(
    "source",
    [
        "obs, reward, done, _, info = env.step(action)",
        "loss.backward()",
        "storage[i] = observation",
        "optimizer.step()",
        "x = torch.from_numpy(batch)",
        "important = model(x)",
        "self.copy_weights_now",
        "fingerprint(state)",
        "self.count(observation)",
        "for state in self.states:",
        "self.actor.apply(_init_weights)",
        "action = np.random.choice(2, p=probabilities)",
        "action = q.argmax().numpy()",
        "target = reward + gamma * network(following).max(1).values",
        "rows = random.choices(range(len(buffer)), k=64)",
        "action = distribution.sample().item()",
        "return action.item(), log_prob",
        "distance = np.linalg.norm(self.position - self.goal)",
        "env = gym.make('CartPole-v1')",
        "indices = np.random.randint(len(self), size=batch)",
        "return self.obs[indices], self.actions[indices]",
        "",
    ],
)
def test_healthy_lines_are_not_blamed(facts, source):
    assert found_in(facts, at("train.py:17", source, 1.0)) == []


@pytest.mark.parametrize(("rule", "source"), SLOW)
def test_slow_lines_that_take_no_time_are_fine(facts, rule, source):
    assert found_in(facts, at("train.py:17", source, 0.1), at("train.py:18", "work()", 0.9)) == []


@pytest.mark.parametrize(
    ("rule", "below"),
    [
        ("copying", ("copy:deepcopy", "copy:_deepcopy_dict")),
        ("restacking", ("numpy.core.shape_base:stack",)),
        ("logging_in_loop", ("logging:info",)),
    ],
)
def test_what_a_line_calls_in_libraries_tells_what_it_does(facts, rule, below):
    (found,) = found_in(facts, at("train.py:17", "helper(state)", 0.8, below=below))
    finding = given(found, rule)
    assert any(below[-1] in sentence for sentence in finding.evidence)


def test_lines_of_one_function_count_together(facts):
    lines = [at(f"train.py:{n}", "writer.add_scalar('x', x, i)", 0.08, "log") for n in (1, 2, 3, 4)]
    (found,) = found_in(facts, *lines)
    finding = given(found, "logging_in_loop")
    assert finding.place.where == "train.py:1"
    assert f"{100 * 4 * 0.08 * 0.6:.1f}%" in finding.cause


def test_a_comprehension_counts_for_the_function_around_it(facts):
    functions = ("Memory.sample", "Memory.sample.<locals>.<listcomp>", "Memory.sample.<locals>.<genexpr>")
    lines = [at(f"train.py:{n}", "torch.tensor([b[0] for b in batch])", 0.1, name) for n, name in enumerate(functions)]
    (found,) = found_in(facts, *lines)
    assert "(with 2 more lines in Memory.sample()) converts" in found.cause
    assert f"{100 * 3 * 0.1 * 0.6:.1f}%" in found.cause


@pytest.mark.parametrize(
    ("function", "logs"), [("Writer.add_histogram", True), ("log_metrics", True), ("log_prob", False), ("act", False)]
)
def test_all_lines_of_a_function_that_logs_are_logging(facts, function, logs):
    found = found_in(facts, at("train.py:17", "counts = bins(values)", 0.5, function))
    assert [one.rule for one in found] == (["logging_in_loop"] if logs else [])


def test_a_buffer_in_a_list_is_one_finding_whatever_its_lines_do(facts):
    sample = ("random.sample(self.memory, n)", "s, a = zip(*batch)", "torch.tensor(np.array(s))", "torch.tensor(a)")
    lines = [at(f"train.py:{n}", source, 0.1, "Memory.sample") for n, source in enumerate(sample)]
    (found,) = line_patterns(in_loop_of_main(with_lines(facts, {"env_step": lines})))
    assert "(with 3 more lines in Memory.sample()) picks and joins the entries" in given(found, "restacking").cause
    assert f"{100 * 4 * 0.1 * 0.6:.1f}%" in found.cause


def test_lines_of_the_training_loop_have_nothing_in_common(facts):
    lines = [at("train.py:1", "x = torch.tensor(obs)", 0.3, "main"), at("train.py:2", "data.pop(0)", 0.4, "main")]
    found = line_patterns(in_loop_of_main(with_lines(facts, {"env_step": lines})))
    assert {one.rule for one in found} == {"per_item_conversion", "growing_container"}


IN_ENVS = [
    ("return np.array([self.x, self.y, self.speed], dtype=np.float32)", False),
    ("return np.concatenate([self.position, self.velocity])", False),
    ("cost = np.sum(np.square(action))", False),
    ("reward = -sum(self.distances)", False),
    ("return np.array([float(v) for v in obs])", True),
    ("return np.stack(self.frames)", True),
    ("bonus = np.std(self.history)", True),
    ("self.grid = copy.deepcopy(self.start)", True),
]


@pytest.mark.parametrize(("source", "mistake"), IN_ENVS)
def test_an_environment_may_do_its_work(facts, source, mistake):
    assert bool(found_in(facts, at("train.py:17", source, 0.5, "World.step"))) is mistake


def test_the_hotter_function_is_named(facts):
    lines = [at("a.py:1", "copy.deepcopy(x)", 0.3, "f"), at("b.py:1", "copy.deepcopy(y)", 0.6, "g")]
    (found,) = found_in(facts, *lines)
    assert found.place.where == "b.py:1"


def test_a_line_is_explained_once(facts):
    """It copies and stacks: the first pattern explains it."""
    found = found_in(facts, at("train.py:17", "np.stack(copy.deepcopy(frames))", 1.0))
    assert len(found) == 1


def test_a_line_of_two_operations_counts_in_both(facts):
    line = at("train.py:17", "print(x)", 0.5)
    (found,) = line_patterns(with_lines(facts, {"env_step": [line], "update": [line]}))
    assert found.operations == ("env_step",)  # a phase is none
    assert "35.0%" in found.cause


def test_a_line_that_runs_a_network_is_not_blamed_for_what_else_it_does(facts):
    below = ("torch.nn.modules.module:Module._wrapped_call_impl",)
    line = at("train.py:17", "values.append(critic(torch.tensor(obs)))", 1.0, below=below)
    assert found_in(facts, line, operation="loss") == []


def test_a_conversion_is_what_the_line_does_itself(facts):
    """Its time is in a library, so the conversion in it costs little."""
    below = ("torch.distributions.categorical:Categorical.__init__",)
    line = at("train.py:17", "chosen = Categorical(logits=torch.tensor(obs))", 1.0, below=below)
    assert found_in(facts, line) == []


def test_lines_in_the_own_time_of_a_phase_name_no_operation(facts):
    (found,) = found_in(facts, at("train.py:17", "print(x)", 1.0), operation="update")
    assert given(found, "logging_in_loop").operations == ()


def test_without_samples_there_is_nothing_to_say(facts):
    assert line_patterns(facts) == []


NETWORK_LINES = [
    ("rows.append(np.array([np.sqrt(x * x + y * y) for x, y in p]))", "per_item_conversion"),
    ("pairs = np.stack([self.pair(a) for a in obs])", "restacking"),
    ("return self.net(torch.cat([obs, extra], dim=1))", None),
    ("x = torch.stack([head(x) for head in self.heads])", None),
]


@pytest.mark.parametrize(("source", "rule"), NETWORK_LINES)
def test_a_network_may_compute_with_tensors_but_not_with_single_numbers(facts, source, rule):
    below = ("torch.nn.modules.module:_call_impl",) if "head" in source else ()
    line = at("train.py:17", source, 0.9, "Features.forward", below=below)
    found = found_in(facts, line, operation="loss")
    assert [one.rule for one in found] == ([rule] if rule else [])


@pytest.fixture(scope="module")
def growing(tmp_path_factory):
    """Env_step takes longer and longer: 1 ms more per iteration."""
    written = Written(tmp_path_factory.mktemp("growing"))
    for number in range(60):
        with written.fake.profiler.iteration():
            written.work("env_step", (10 + number) * MS)
            written.work("loss", 10 * MS)
        written.fake.profiler.add_steps(8)
    return facts_of(written.end())


def test_lines_of_a_growing_operation_go_through_its_history(growing):
    lines = [
        at("train.py:1", "everything = np.concatenate(history)", 0.3, "main"),
        at("train.py:2", "mean = everything.mean(axis=0)", 0.2, "main"),
        at("train.py:3", "std = everything.std(axis=0)", 0.4, "main"),
        at("train.py:4", "obs = self.env.step(action)", 0.1, "main"),
    ]
    (found,) = line_patterns(in_loop_of_main(with_lines(growing, {"env_step": lines})))
    assert found.rule == "growing_container"
    assert "train.py:3 (with 2 more lines in main()) goes through everything collected so far" in found.cause


def test_a_more_specific_line_of_a_growing_operation_is_named_as_such(growing):
    (found,) = found_in(growing, at("train.py:1", "self.memory.pop(0)", 0.9, "add"))
    assert "moves all elements" in found.cause


def test_the_same_lines_go_through_no_history_if_nothing_grows(facts):
    assert found_in(facts, at("train.py:2", "mean = everything.mean(axis=0)", 0.9)) == []


def test_all_lines_of_a_function_that_draws_by_priority_are_one_finding(growing):
    lines = [
        at("train.py:26", "scaled = [p ** 0.6 for p in self.prio]", 0.2, "Sampler.sample"),
        at("train.py:27", "total = sum(scaled)", 0.2, "Sampler.sample"),
    ]
    (found,) = line_patterns(in_loop_of_main(with_lines(growing, {"env_step": lines})))
    assert (
        "(with 1 more line in Sampler.sample()) goes through all priorities" in given(found, "weighted_sampling").cause
    )
