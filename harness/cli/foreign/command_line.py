"""Translates another tool's command line into one of ours. Nothing is run, and no API key is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import takewhile

from harness.cli.foreign import containers, shell
from harness.cli.foreign.tables import COMMON, FlagTable, answer, flag_name, tables
from harness.cli.foreign.translation import LOAD_FLAGS, MANY, Translation, fields_in, quoted
from harness.core import codec
from harness.core.sanitize import visible
from harness.core.secret import is_secret, looks_like_a_key, names_a_secret
from harness.sweeps.plan import LOADS

_LAUNCHER = re.compile(
    r"accelerate|apptainer|conda|docker|exec|kubectl|mamba|mpirun|nerdctl|nice|nohup|numactl|oc|pixi|podman|poetry|"
    r"python[\d.]*|salloc|screen|setsid|singularity|srun|ssh|stdbuf|sudo|taskset|time|timeout|tmux|torchrun|uvx?"
)
"""Programs that start another program, which a later word names."""
_FLAG = re.compile(r"--?[A-Za-z]|\+\+")
UNKNOWN_FLAG = "The harness does not know this flag, so check whether it changes the result"
NOT_TAKEN = "Our command has no equivalent"
AMBIGUOUS = "Several projects have a script of this name, and none of its flags belongs to one that the harness knows"
IN_CONTAINER = "The command runs outside the container, where its address must be reachable (`kubectl port-forward`)"
NO_IMAGE = "Install the engine on the node, or name a Docker image with --docker"
REMOTE = "Run the command on that machine"
IN_LOOP = "A condition decides how often the command runs"
ONE_BRANCH = "Only one of the branches runs: paste the one that you mean"
OF_CONTAINERS = "The name is known only among the containers: use the port that the server publishes at 127.0.0.1"
JOB = "Put the command into a job's script (docs/scaling.md)"
MOUNTS = "Only the model and the hub cache are mounted"


# ---- reading the other tool's words


def translations(args: Sequence[str], takes: Callable[[Sequence[str]], Collection[str]]) -> list[Translation]:
    """Our equivalents of the other tools' commands in `args`; none if it contains no known tool. Load tests that differ
    only in their load become one sweep.

    args: the words of a command, or one text, which may be a whole script. takes: returns the names of our command's
    flags and arguments. Raises `UsageError` for a text that is not a shell program.
    """
    done, loads = list[Translation](), dict[str, Translation]()
    places = dict[int, dict[int, list[Translation]]]()  # the commands in each branch of a condition
    for command in shell.commands(args):
        for at, start, table, ours in _started(command.words):
            if table is None:
                done.append(Translation([], (), lost={" ".join(command.words[at : at + start])[:80]: ours}))
                continue
            rest, environment = command.words[at + start :], command.environment
            keys = [name for name, value in environment.items() if is_secret(name, value) or looks_like_a_key(value)]
            plain = [f"{name}={quoted(value)}" for name, value in environment.items() if name not in keys]
            named = [*takewhile(lambda word: word[0] != "-", ours.split())]
            of_ours = {*takes(named), *(["BENCHMARKS", "--limits"] if named == ["sweep"] else [])}
            translation = Translation(named, of_ours, plain, tool=table.name)
            for variable in keys:
                translation.add_key(table.key, variable)
            translation.add_options(ours.split()[len(named) :])
            translation.engine += [command.words[at], *table.program.split()] if table.program else []
            typed = _translate(translation, table, rest)
            starters = {word.rpartition("/")[2] for word in [*command.before, *command.words[:at]]}
            if {"sbatch", "srun"} & starters:
                translation.notes["srun, sbatch"] = JOB
            translation.lost |= {"ssh": REMOTE} if "ssh" in starters else {}
            translation.lost |= {"while, until": IN_LOOP} if shell.REPEATED in command.branches.values() else {}
            if named[0] == "serve" and (not command.is_awaited or {"nohup", "setsid", "tmux", "screen"} & starters):
                translation.add_options(["--detach"])
            for number, branch in command.branches.items():
                places.setdefault(number, {}).setdefault(branch, []).append(translation)
            _add_container(translation, [*command.before, *command.words[: at + start]])
            _add_defaults(translation, table, typed)
            translation.finish(table, typed)
            if translation.command == ["sweep"]:
                apart = re.sub(rf"(?m)^({'|'.join(LOADS)}): .*", "", translation.sweep_file)
                earlier = loads.setdefault(apart, translation)
                if earlier is not translation:
                    earlier.options += [option for option in translation.options if option[0] in LOAD_FLAGS]
                    earlier.notes |= translation.notes
                    earlier.lost |= translation.lost
                    continue
                translation.number = len(loads)
            done.append(translation)
    for branches in places.values():
        for translation in [one for each in branches.values() for one in each] if len(branches) > 1 else ():
            translation.lost["if, case, ||"] = ONE_BRANCH
    _share_key(done)
    return done


def _share_key(done: Sequence[Translation]) -> None:
    """Name the variable with the key of a server in the same text for the clients that ask this machine."""
    keys = {one.value_of("--server-key-env") for one in done} - {None}
    for client in done if len(keys) == 1 else ():
        address = client.value_of("--base-url") or ""
        if client.command[:1] in (["run"], ["sweep"]) and re.match(
            r"https?://(127\.0\.0\.1|localhost|0\.0\.0\.0)\b", address
        ):
            client.drop("--api-key-env")
            client.add_options(["--api-key-env", *filter(None, keys)])


def _started(words: Sequence[str]) -> Iterator[tuple[int, int, FlagTable | None, str]]:
    """Yield where a known tool starts among the words, in how many words, its table, and our first words; without a
    table, a sentence on why there are none. Yields nothing if no tool is known.
    """
    if not words:
        return
    names = [re.sub(r"(?<=.):[\w.-]*\Z", "", word.rpartition("/")[2]) if "://" not in word else "" for word in words]
    starts = [(start.split(), ours, table) for table in tables().values() for start, ours in table.starts.items()]
    starts.sort(key=lambda one: -len(one[0]))
    refused = [(start.split(), sentence, None) for start, sentence in tables()[COMMON].refusals.items()]
    ends = len(names) if _LAUNCHER.fullmatch(names[0]) else 1
    flags = {flag_name(word.partition("=")[0]) for word in words}
    for known in (starts, refused):
        for i in range(ends):
            whole = f"/{words[i]}"
            here = [
                one
                for one in known
                if names[i : i + len(one[0])] == one[0] or ("/" in one[0][0] and whole.endswith(f"/{one[0][0]}"))
            ]
            for start, ours, table in here:
                if table is None or not start[0].endswith(".py") or flags & {*table.marks.split()}:
                    yield i, len(start), table, ours
                    return
            if here:
                yield i, 1, None, AMBIGUOUS
                return


def _translate(translation: Translation, table: FlagTable, words: Sequence[str]) -> dict[str, str]:
    """Translate each flag and each argument among the words; return the flags' first values by name."""
    left, arguments, typed = [*words], table.words.split(), dict[str, str]()
    while left:
        flag, is_set, value = left.pop(0).partition("=")
        if not _FLAG.match(flag):
            name = arguments[0] if arguments else visible(flag, 80)
            del arguments[: len(arguments) > 1]
            _answer(translation, table, name, [flag + is_set + value])
            continue
        end = next((i for i, word in enumerate(left) if _FLAG.match(word)), len(left))
        values = [value] if is_set else left[:end]
        typed[flag_name(flag)] = values[0] if values else ""
        left = [*_answer(translation, table, flag, values), *left[0 if is_set else end :]]
    return typed


def _add_defaults(translation: Translation, table: FlagTable, typed: Collection[str]) -> None:
    """Translate what the tool does without flags. typed: the flags that are given, without dashes."""
    for names, value in table.defaults.items():
        flag, *_ = alike = names.split()
        found = answer(table, flag, value)
        words = found.words_for(translation.takes) if found is not None else ""
        if not {*alike} & {*typed} and translation.value_of(words.partition(" ")[0]) is None:
            _answer(translation, table, flag, [value])
    if table.default and not translation.benchmarks:
        translation.benchmarks.append(table.default)


def _answer(translation: Translation, table: FlagTable, flag: str, values: Sequence[str]) -> Sequence[str]:
    """Translate one flag; return the words after it that are not its values."""
    name, shown, value = flag_name(flag), visible(flag, 80), values[0] if values else ""
    if any(fnmatchcase(name, pattern) for pattern in table.fields.split()):
        fields = [pair for text in values for pair in fields_in(text)]
        for key, part in fields:
            text = part if isinstance(part, str) else codec.encode(part).decode()
            _answer(translation, table, f"{flag}.{key}", [text])
        if fields:
            return ()
    found = answer(table, flag, value)
    if names_a_secret(flag) and found in (None, tables()[COMMON].answers["api-key"]):
        translation.add_key(table.key, shown, value)
        return ()
    if found is not None and (words := found.words_for(translation.takes)):
        translation.add(words, flag, values)
        return () if MANY.search(words) else values[int("{" in words) :]
    if table.rest and (found is None or (found.text and not found.is_reason)):
        translation.engine += [flag, *values]
    elif found is None:
        translation.lost[shown] = UNKNOWN_FLAG
    elif found.text:
        reason = found.text if found.is_reason else NOT_TAKEN
        is_harmless = found.is_reason and not found.is_loss
        (translation.notes if is_harmless else translation.lost)[shown] = reason.rstrip(".")
    return ()


# ---- containers


def _add_container(translation: Translation, before: Sequence[str]) -> None:
    """Translate the `docker run` among the words before a tool's own; a note for a container that already runs."""
    table = tables()["docker"]
    run = containers.docker_run(before, table.switches)
    if run is None:
        if "exec" in before:
            is_image = any(re.fullmatch(r"(.*/)?(singularity|apptainer)", word) for word in before)
            translation.notes["exec"] = NO_IMAGE if is_image else IN_CONTAINER
        return
    ports, mounts = list[str](), dict[str, str]()
    for flag, value in run.flags:
        name = flag.lstrip("-")
        if name in ("p", "publish"):
            ports.append(value)
        elif name in ("e", "env"):
            variable, is_set, text = value.partition("=")
            if is_secret(variable, text) or looks_like_a_key(text):
                translation.add_key(table.key, variable)
            elif variable.endswith("VISIBLE_DEVICES"):
                translation.add_options(["--devices", text])
            elif is_set and "--env" in translation.takes:
                translation.add_options(["--env", value])
        elif name in ("v", "volume"):
            source, _, target = value.partition(":")
            mounts[target.partition(":")[0]] = source
        else:
            _answer(translation, table, flag, [value])
    if translation.command[:1] != ["serve"]:
        translation.notes[visible(run.image, 80)] = "A client needs no container"
        if re.match(r"https?://(?!localhost)[\w-]+(:|/|\Z)", translation.value_of("--base-url") or ""):
            translation.lost["--base-url"] = OF_CONTAINERS
        return
    translation.add_options(["--docker", run.image])
    if version := re.search(r":v?(\d+\.\d+\.\d+)", run.image):
        translation.add_options(["--engine-version", version[1]])
    if ports:
        *host, port, inner = ["", "", *ports[0].split(":")][-3:]
        translation.drop("--host", "--port")
        translation.add_options(["--host", host[0] or "0.0.0.0", "--port", port or inner])  # noqa: S104 - as docker does
    _add_mounts(translation, mounts)


def _add_mounts(translation: Translation, mounts: dict[str, str]) -> None:
    """Give files in mounted folders their names outside the container. A file in the image keeps its name, and the
    engine gets its option unchanged. mounts: folder in the container → folder outside.
    """

    def outside(path: str) -> str:
        """The file outside the container; empty if it is in the image."""
        inside = [folder for folder in mounts if path == folder or path.startswith(f"{folder.rstrip('/')}/")]
        return mounts[max(inside, key=len)] + path[len(max(inside, key=len)) :] if inside else ""

    if (hub := mounts.pop("/root/.cache/huggingface", "")) and not hub.endswith("~/.cache/huggingface"):
        translation.environment.append(f"HF_HOME={quoted(hub)}")
    translation.arguments = [outside(word) or word for word in translation.arguments]
    if (template := translation.value_of("--chat-template")) is not None:
        translation.drop("--chat-template")
        if file := outside(template):
            translation.add_options(["--chat-template", file])
        else:
            translation.engine += ["--chat-template", template]
    for target, source in mounts.items():
        if not any(word.startswith(source) for word in translation.arguments):
            translation.notes[visible(f"-v {source}:{target}", 80)] = MOUNTS
