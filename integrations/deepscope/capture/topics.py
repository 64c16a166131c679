"""What a recording can hold, by topic: which option each one sets, what it means and what it costs.

The command's help, docs/recording.md and the error messages are made from this table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from deepscope.errors import OptionError


class Topic(NamedTuple):
    """One of the things that a recording can hold."""

    option: str
    """The field of `RecordingOptions` that it is, and its values with the topic and without it."""
    on: Any
    off: Any
    what: str
    costs: str
    """Beside `minimal`, on the CPU (docs/recording.md)."""
    with_it: tuple[str, ...] = ()
    """Other topics that it needs, and so brings."""
    also_on: tuple[Any, ...] = ()
    """Other values of the option with the topic; where one is given it stays."""


TOPICS = {
    "lines": Topic(
        "lines", True, False, "the lines of your code as they run", "1 µs a run of a line; 1.9 times the trace"
    ),
    "modules": Topic("modules", True, False, "the calls of modules", "1 µs a call"),
    "compiled": Topic(
        "compiled_lines",
        True,
        False,
        "the source lines of torch.compile's kernels",
        "one compilation anew in the first run, else nothing that can be measured",
    ),
    "libraries": Topic(
        "libraries",
        "hot",
        "off",
        "the lines of the packages whose modules run",
        "1.10 times a step of mostly Python",
        ("modules",),
    ),
    "shapes": Topic(
        "record_shapes",
        True,
        False,
        "shapes and types of operators' arguments",
        "1.3 times a step of mostly Python, 1.6 times the trace",
    ),
    "flops": Topic("with_flops", True, False, "FLOPs, which follow from shapes", "as shapes", ("shapes",)),
    "memory": Topic(
        "profile_memory",
        True,
        False,
        "allocations, and what holds memory",
        "1.2 times a step of mostly Python, 1.7 times one of 2 ms, 1.6 times the trace",
    ),
    "stacks": Topic(
        "with_stack", True, False, "torch's own Python stacks", "1.3 times a step of mostly Python, 1.6 times the trace"
    ),
    "sync": Topic(
        "sync_events", True, False, "CUDA's waits as events: which stream waited for which", "an event for each wait"
    ),
    "counters": Topic(
        "counters",
        "window",
        "off",
        "what the machine does meanwhile: CPU, memory, disks, network, GPUs",
        "at most half a percent of a core",
        also_on=("run",),
    ),
    "threads": Topic(
        "all_threads", True, None, "threads that you start yourself", "a risk to the process before torch 2.14"
    ),
    "torch_modules": Topic(
        "with_modules", True, False, "torch's own names of TorchScript modules", "nothing without TorchScript"
    ),
}

PRESETS: dict[str, str] = {
    "default": "what is recorded by default",
    "minimal": "operators and kernels alone; no hook is installed",
    "everything": "all topics but threads, which memory excludes",
}
"""Sets of topics with a name, and what each is."""


def default_topics(options: Mapping[str, Any]) -> frozenset[str]:
    """The topics that are on with these values of options."""
    return frozenset(name for name, topic in TOPICS.items() if options.get(topic.option) in (topic.on, *topic.also_on))


def topic_names(given: object, defaults: Mapping[str, Any]) -> frozenset[str]:
    """The topics that are asked for, those that they need among them.

    Args:
        given: a name, several with commas between them, or a collection of names; presets count as what they hold.
        defaults: of the options, by name.

    Raises:
        OptionError: there is no such topic.
    """
    words = given.split(",") if isinstance(given, str) else given
    if not isinstance(words, Collection) or not all(isinstance(word, str) for word in words):
        raise OptionError("topics", given, f"must be names of topics: {_known()}")
    chosen: set[str] = set()
    for word in sorted({word.strip() for word in words} - {""}):
        if word not in TOPICS and word not in PRESETS:
            raise OptionError("topics", _join_words(words), f"there is no topic {word!r}; there are: {_known()}")
        chosen |= _preset(word, defaults) if word in PRESETS else {word}
    for word in tuple(chosen):
        chosen.update(TOPICS[word].with_it)
    return frozenset(chosen)


def _preset(word: str, defaults: Mapping[str, Any]) -> frozenset[str]:
    if word == "default":
        return default_topics(defaults)
    return frozenset(TOPICS) - {"threads"} if word == "everything" else frozenset()


def _known() -> str:
    return f"{', '.join(TOPICS)}; and the sets {', '.join(PRESETS)}"


def _join_words(words: Collection[str]) -> str:
    return ",".join(sorted(words))


def options_of(chosen: Collection[str], explicit: Mapping[str, Any]) -> dict[str, Any]:
    """The values of all options that are topics: on for those that are `chosen`, off for the others.

    Args:
        chosen: names of topics, with those that they need.
        explicit: options that were given beside the topics, by name.

    Raises:
        OptionError: one of these says the contrary.
    """
    options: dict[str, Any] = {}
    for name, topic in TOPICS.items():
        given = explicit.get(topic.option)
        is_on = given == topic.on or given in topic.also_on
        default = topic.on if name in chosen else topic.off
        options[topic.option] = default if given is None or (name in chosen and given not in topic.also_on) else given
        if given is None or is_on if name in chosen else given in (topic.off, None, False):
            continue
        asked = f"{topic.option}={given!r}"
        problem = f"{asked} contradicts the topic {name!r}; leave one of the two out"
        if name not in chosen:
            problem = f"{asked} asks for {name!r}, which is none of them; name it, too, or leave {topic.option} out"
        raise OptionError("topics", _join_words(chosen) or "minimal", problem)
    return options


def help_text() -> str:
    """For a terminal of 80 columns: a line or two for each topic and each set."""
    lines = ["Topics (--topics), and what each costs:", ""]
    width = max(map(len, TOPICS)) + 2
    for name, topic in TOPICS.items():
        lines += _wrapped(f"  {name:<{width}}", f"{topic.what}: {topic.costs}")
    lines += ["", "Sets of topics:", ""]
    for name, what in PRESETS.items():
        lines += _wrapped(f"  {name:<{width}}", what)
    return "\n".join(lines)


def _wrapped(start: str, text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 79, initial_indent=start, subsequent_indent=" " * len(start))


def markdown() -> Iterator[str]:
    """The lines of the tables in docs/recording.md."""
    yield "| topic | option | holds | costs |"
    yield "|---|---|---|---|"
    for name, topic in TOPICS.items():
        needs = f"; brings {', '.join(f'`{one}`' for one in topic.with_it)}" if topic.with_it else ""
        value = f'"{topic.on}"' if isinstance(topic.on, str) else topic.on
        yield f"| `{name}` | `{topic.option}={value}` | {topic.what}{needs} | {topic.costs} |"
    yield ""
    yield "| set | holds |"
    yield "|---|---|"
    for name, what in PRESETS.items():
        yield f"| `{name}` | {what} |"
