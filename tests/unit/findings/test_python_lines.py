"""DS013, a line of Python."""

from __future__ import annotations

import ast

import pytest

from trace_builder import MAIN, TraceBuilder

FILE = "/home/me/train.py"
US = 1_000


def steps(*, python: int = 550, operators: int = 1, count: int = 2) -> TraceBuilder:
    """Steps of 1,000 µs: line 5 for `python` µs with operators of 1 µs in it, then line 6 multiplies for 300 µs."""
    builder = TraceBuilder()
    for number in range(count):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 5, "main", at, python * US)
        for turn in range(operators):
            builder.op("aten::empty", at + (10 + 2 * turn) * US, 1 * US)
        builder.line(FILE, 6, "main", at + 600 * US, 310 * US).op("aten::mm", at + 605 * US, 300 * US)
    return builder


def test_a_line_whose_time_is_no_operators_is_found(findings_of):
    (found,) = findings_of(steps(), "DS013")
    assert (found.file, found.line) == (FILE, 5)
    assert found.evidence == {"python_cpu_ns": 2 * 549 * US, "runs": 2}
    assert found.saving_ns == 2 * 549 * US


def test_python_around_many_operators_or_little_of_it_is_not_found(findings_of):
    assert findings_of(steps(operators=5), "DS013") == []
    assert findings_of(steps(python=40, operators=0), "DS013") == []


def test_what_a_module_does_in_python_is_the_modules(findings_of):
    builder = steps(operators=0)
    for start in (10 * US, 1010 * US):
        builder.module("Linear", "head", start, 30 * US)
    assert findings_of(builder, "DS013") == []


def test_lines_that_run_the_engine_or_an_optimizer_are_not_found(findings_of):
    backward = steps(operators=0)
    for number in range(2):
        backward.op("aten::mm", (number * 1000 + 920) * US, 5 * US, sequence=number)
        backward.backward("MmBackward0", (number * 1000 + 20) * US, 5 * US, number, tid=MAIN)
    assert findings_of(backward, "DS013") == []
    optimizer = steps(operators=0)
    for number in range(2):
        optimizer.annotation("Optimizer.step#SGD.step", (number * 1000 + 10) * US, 300 * US)
    assert findings_of(optimizer, "DS013") == []


WALK = "def main():\n    for step in range(9):\n        rows = walk(tree)\n        train(rows)\n\n\n"
WALKED = "def walk(tree):\n    for node in tree:\n" + "        keep(2 * node)\n" * 15


def walking(*, text: str = WALK + WALKED, operators: int = 0, each: int = 30 * US, modules: int = 0) -> TraceBuilder:
    """Steps of 1,000 µs: line 3 calls `walk`, whose lines 9 to 23 run for 30 µs each; line 4 multiplies."""
    builder = TraceBuilder()
    for number in range(3):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 3, "main", at, 15 * (each + 2 * US))
        for turn in range(15):
            start = at + turn * (each + US)
            builder.line(FILE, 9 + turn, "walk", start, each)
            if turn < operators:
                builder.op("aten::mm", start + US, 28 * US)
            if turn < modules:
                builder.module("Linear", "head", start + US, 28 * US)
        builder.line(FILE, 4, "main", at + 600 * US, 310 * US).op("aten::mm", at + 605 * US, 300 * US)
    builder.files[0]["text"] = text
    return builder


def test_a_function_that_loops_in_python_is_found_though_none_of_its_lines_takes_long(findings_of):
    (found,) = findings_of(walking(), "DS013")
    assert (found.line, found.evidence["python_cpu_ns"]) == (9, 3 * 15 * 30 * US)
    assert not found.is_measured
    assert found.message == "the time of walk is spent in Python, over its lines and what they call"
    assert "do its loops on whole arrays" in found.remedy.text


def test_a_functions_lines_take_some_time_each_though_recording_cost_as_much_as_they_took(findings_of):
    builder = TraceBuilder()
    for number in range(3):
        at = number * 20 * US
        builder.step(number, at, 20 * US).line(FILE, 3, "main", at, 200)
        for turn in range(100):
            builder.line(FILE, 9 + turn % 15, "walk", at + 2 * turn, 1)
        builder.line(FILE, 4, "main", at + 13 * US, 6 * US).op("aten::mm", at + 13 * US, 6 * US)
    builder.files[0]["text"] = WALK + WALKED
    assert 3 * 100 * 30 in [one.evidence["python_cpu_ns"] for one in findings_of(builder, "DS013")]


@pytest.mark.parametrize(
    "builder",
    [
        walking(text=WALK + WALKED.replace("for node in tree", "with tree as node")),  # no loop
        walking(operators=9),
        walking(modules=1),
        walking(each=2 * US),
    ],
)
def test_a_function_without_a_loop_or_with_operators_or_modules_is_not_found(findings_of, builder):
    assert findings_of(builder, "DS013") == []


def test_a_function_that_is_called_in_one_that_is_found_is_a_part_of_it(findings_of):
    text = "def main():\n    for step in range(9):\n        rows = batch(tree)\n        train(rows)\n\n\n" + WALKED
    text += "\n\ndef batch(tree):\n    for one in range(9):\n        walk(tree)\n"
    builder = TraceBuilder()
    for number in range(3):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 3, "main", at, 480 * US)
        builder.line(FILE, 28, "batch", at + US, 478 * US)
        for turn in range(15):
            builder.line(FILE, 9 + turn, "walk", at + (10 + 31 * turn) * US, 30 * US)
        builder.line(FILE, 4, "main", at + 600 * US, 310 * US).op("aten::mm", at + 605 * US, 300 * US)
    builder.files[0]["text"] = text
    (found,) = findings_of(builder, "DS013")
    assert (found.line, found.function) == (28, "batch")


def test_a_time_that_another_rule_promises_is_not_promised_again(findings_of):
    loading = steps()
    for number in range(2):
        loading.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", number * 1000 * US, 550 * US)
    assert findings_of(loading, "DS003") != []
    assert findings_of(loading, "DS013") == []


def with_text(text: str) -> TraceBuilder:
    """`steps`, with that text on line 5."""
    builder = steps(operators=0)
    builder.files[0]["text"] = "\n" * 4 + text + "\n"
    return builder


@pytest.mark.parametrize(
    "text",
    [
        "far = torch.cdist(a, b).min(1).values",
        "optimizer.zero_grad()",
        "y = F.pad(x, (1, 1))",
        "loss.backward()",
        "torch._foreach_lerp_(list(self.average.parameters()), list(model.parameters()), 0.1)",
    ],
)
def test_what_torch_does_outside_operators_is_not_the_lines_python(findings_of, text):
    assert findings_of(with_text(text), "DS013") == []


@pytest.mark.parametrize("text", ["xs, ys = [], []", "batch = None", "seen: dict = {}", "del batch, target"])
def test_letting_go_of_what_names_held_is_not_the_lines_python(findings_of, text):
    assert findings_of(with_text(text), "DS013") == []


def test_a_comprehension_wants_whole_arrays_and_a_librarys_function_to_be_called_less_often(findings_of):
    (found,) = findings_of(with_text("mask = torch.tensor([n % 7 for n in range(9)])"), "DS013")
    assert "whole arrays" in found.remedy.text
    (found,) = findings_of(with_text("history.append(np.percentile(gradients, 99))"), "DS013")
    assert "every N steps" in found.remedy.text
    assert "arrays" not in found.remedy.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("row = self.frame.iloc[index]", "to_numpy()"),
        ("for _, row in frame.iterrows(): pass", "to_numpy()"),
        ("table = pd.read_csv(path)", "Parse once"),
        ("sample = json.loads(self.lines[index])", "Parse once"),
        ("ids = self.tokenizer(text, truncation=True)['input_ids']", "Tokenize once"),
        ("ids = tokenizer.encode(text)", "Tokenize once"),
        ("image = Image.open(path).convert('RGB')", "Decode in"),
        ("image = cv2.imread(path)", "Decode in"),
        ("image = Image.fromarray(frame).resize((80, 48), Image.BILINEAR)", "Do it once before training"),
        ("mel = librosa.feature.melspectrogram(y=wave)", "Do it once before training"),
        ("array = np.load(path)['x']", "Open files once"),
        ("with open(path) as file: text = file.read()", "Open files once"),
        ("scores.append(f1_score(labels, guesses))", "once an epoch"),
        ("json.dump(self.history, file)", "every N steps"),
        ("torch.save(model.state_dict(), path)", "every N steps"),
        ("target = copy.deepcopy(model)", "load_state_dict"),
        ("rows = np.random.choice(self.size, batch, replace=False)", "Draw places"),
        ("batch = random.sample(self.memory, 64)", "Draw places"),
        ("order = torch.randperm(self.n).tolist()", "Draw places"),
        ("gc.collect()", "Take it out"),
        ("batch = random.sample(list(self.memory), 64)", "Draw places"),
        ("rows = np.random.choice(len(data), 64, replace=False)", "Draw places"),
        ("rows = numpy.random.permutation(size)[:64]", "Draw places"),
        ("order = self.rng.permutation(size)[:64]", "Draw places"),
        ("best = sorted(candidates, key=score)[:5]", "heapq.nlargest"),
        ("batch = torch.tensor(rows)", "lists go number"),
        ("batch = torch.FloatTensor(rows)", "lists go number"),
    ],
)
def test_what_a_line_calls_says_what_to_do(findings_of, text, words):
    (found,) = findings_of(with_text(text), "DS013")
    assert words in found.remedy.text


def test_what_is_dear_to_use_is_known_by_where_it_came_from(findings_of):
    builder = steps(operators=0)
    builder.files[0]["text"] = (
        "def main():\n    row = frame.iloc[3]\n\n    data = json.loads(text)\n    values = row[names]\n"
    )
    (found,) = findings_of(builder, "DS013")
    assert "to_numpy()" in found.remedy.text
    builder.files[0]["text"] = (
        "def main():\n    row = frame.iloc[3]\n\n    data = json.loads(text)\n    values = f(data)\n"
    )
    (found,) = findings_of(builder, "DS013")
    assert found.remedy.text.startswith("Do it every N steps, once before the loop"), "what was parsed is an object"


def test_a_known_call_is_found_although_it_starts_operators_and_no_module(findings_of):
    builder = steps(operators=5)
    builder.files[0]["text"] = "\n" * 4 + "target = copy.deepcopy(model)\n"
    (found,) = findings_of(builder, "DS013")
    assert "load_state_dict" in found.remedy.text
    for number in range(2):
        builder.module("Linear", "head", (number * 1000 + 100) * US, 30 * US)
    assert findings_of(builder, "DS013") == []


@pytest.mark.parametrize(
    "text",
    [
        "tensor.load()",
        "locate(x)[0]",
        "y = torch.tensor(np.stack(rows, 1))",
        "self.opened = reopen(x)",
        "accuracy(x, y)",
    ],
)
def test_names_that_only_look_like_these_say_nothing(findings_of, text):
    (found,) = findings_of(with_text(text), "DS013")
    assert found.remedy.text.startswith("Do it every N steps, once before the loop")


def test_what_a_run_does_once_is_no_advice(findings_of):
    assert findings_of(steps(count=1), "DS013") == []
    once = TraceBuilder()
    for number in range(4):
        once.step(number, number * 1000 * US, 1000 * US).line(FILE, 6, "main", number * 1000 * US, 300 * US)
        once.op("aten::mm", number * 1000 * US + US, 298 * US)
    once.line(FILE, 5, "main", 1300 * US, 600 * US)
    assert findings_of(once, "DS013") == []


def test_what_held_up_one_run_is_not_the_lines(findings_of):
    builder = TraceBuilder()
    for number in range(6):
        length = 8000 if number == 4 else 1000
        at = number * 1000 * US + (7000 * US if number > 4 else 0)
        builder.step(number, at, length * US).line(FILE, 5, "main", at, (length - 800) * US)
        builder.line(FILE, 6, "main", at + (length - 700) * US, 310 * US)
        builder.op("aten::mm", at + (length - 690) * US, 300 * US)
    (found,) = findings_of(builder, "DS013")
    assert found.saving_ns == 7 * 200 * US  # twice the median in the run that was held up


@pytest.mark.parametrize("has_text", [True, False])
def test_a_statement_of_several_lines_comes_back_to_its_first_which_is_no_run_of_its_own(has_text: bool, findings_of):
    builder = TraceBuilder()
    for number in range(4):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 5, "main", at, 500 * US)
        builder.line(FILE, 6, "main", at + 501 * US, 20 * US).line(FILE, 5, "main", at + 522 * US, 2 * US)
        builder.line(FILE, 7, "main", at + 600 * US, 310 * US).op("aten::mm", at + 610 * US, 290 * US)
    if has_text:
        builder.files[0]["text"] = "\n" * 4 + "batch = (torch.tensor(states),\n    torch.tensor(actions))\n"
    found = findings_of(builder, "DS013")
    assert [(one.line, one.saving_ns) for one in found] == ([(5, 4 * 502 * US)] if has_text else [])


@pytest.mark.parametrize("is_read_only", [False, True])
def test_the_operators_of_a_deep_copy_are_its_own_unless_an_audit_names_it(is_read_only: bool, findings_of):
    copies = [{"place": 0, "name": "aten::copy_", "need": "none", "shape": [4], "times": 1, "result_bytes": 16}]
    audit = {"format": 1, "steps": 2, "operators": 9, "places": [[0, 5, "main"]], "copies": copies}
    builder = TraceBuilder(deepscope={"audit": audit} if is_read_only else {})
    for number in range(3):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 5, "main", at, 400 * US)
        builder.op("aten::clone", at + 10 * US, 380 * US)
        builder.line(FILE, 6, "main", at + 600 * US, 310 * US).op("aten::mm", at + 610 * US, 290 * US)
    builder.files[0]["text"] = "\n" * 4 + "new = copy.deepcopy(student)\n"
    found = findings_of(builder, "DS013")
    if is_read_only:
        assert found == []
    else:
        assert (found[0].evidence["copying_ns"], found[0].saving_ns) == (3 * 400 * US, 3 * 400 * US)
        assert "AveragedModel" in found[0].remedy.text


def test_a_text_is_parsed_once_however_many_of_its_lines_take_time(findings_of, monkeypatch: pytest.MonkeyPatch):
    builder = TraceBuilder()
    for number in range(2):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US)
        for line in range(90):
            builder.line(FILE, 2 + line, "main", at + 10 * line * US, 9 * US)
    builder.files[0]["text"] = "\n" + 90 * "rows = walk(tree)\n"
    parsed = []
    parse = ast.parse
    with monkeypatch.context() as patch:
        patch.setattr(ast, "parse", lambda text: (parsed.append(text), parse(text))[1])
        findings_of(builder, "DS013")
    assert parsed.count(builder.files[0]["text"]) == 1


def test_with_a_device_its_idle_time_is_what_counts(findings_of):
    assert findings_of(steps().kernel("gemm", 10 * US, 20 * US, 500 * US), "DS013") == []
