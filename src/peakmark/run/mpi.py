"""Compile mpibench with the MPI library of the site, and start MPI programs on the nodes of a job.

``srun`` starts the ranks as a step of the job, or ``mpirun`` does. Which of them works with a library is
tried once for each campaign: on one node, and on two.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from peakmark import __version__, files, slurm
from peakmark.catalogue import KERNELS
from peakmark.config.types import SiteMpi
from peakmark.errors import MeasurementError, PeakmarkError, Unavailable
from peakmark.formatting import listed
from peakmark.machine import software
from peakmark.run import cleanup, execute, kernel_build, pair
from peakmark.tools.base import Command, Completed, ask

FOLDER = "mpi"
"""Folder of a campaign that holds what is known of its MPI library and of how its ranks start."""
TYPES = ("pmix", "pmi2", "cray_shasta", "none")
"""Types of ``srun --mpi`` that are tried, the best one first."""
PROBE_S = 20
"""Longest time, in seconds, that two ranks may take to start and to exchange a message."""
_COMPILE_S = 300.0
"""Longest time, in seconds, that mpibench may take to compile."""
_VERBOSE = {
    "OMPI_MCA_pml_base_verbose": "10",
    "OMPI_MCA_btl_base_verbose": "10",
    "UCX_LOG_LEVEL": "info",
    "UCX_LOG_FILE": "stderr",
    "MPIR_CVAR_DEBUG_SUMMARY": "1",
}
"""Variables with which Open MPI, UCX and MPICH report the transport that they chose."""
_REPORTS = (
    r"ep_cfg\[\d+\]: tag\(((?!self)[^)]+)\)",
    r"cfg#\d+ tag\(((?!self)[^)]+)\)",
    r"Using (?!self)(\w+) btl for send",
    r"provider: ([\w;]+)",
    r"select: component (\w+) selected",
)
"""Patterns of the transport in the debug output of MPI libraries.

In this order: UCX, a newer UCX, Open MPI's BTLs, OFI, and Open MPI's PML.
"""
_ALONE = re.compile(
    r"was started with 1:|requires (?:exactly|at least) two processes|Need at least \d+ processes|invalid for 1 processes"
    r"|OPAL ERROR: Unreachable"
)
"""Messages of programs whose rank found no other rank.

The launcher then belongs to another MPI library than the program. The messages are those of
mpibench, OSU, HPL, IMB and Open MPI.
"""
_NOT_STARTED = re.compile(r"task \d+ launch failed|launch for StepId=\S+ failed")
"""Messages of srun if it started no ranks. Some releases of srun then end with exit code 0."""
_REASONS = (
    r"^mpibench: .",
    r"tasks? [\d,-]+: (?!Exited|Terminated)|signal \d|Killed|KILLED",
    r"^(?:srun: error|Abort|Fatal)|ERROR|error|not found|cannot",
)
"""Patterns of a line of output that says why ranks did not start or ended; the most telling one is first."""
_PASSING = re.compile(r"Unable to (?:create step|confirm allocation)|Socket timed out")
"""Words of srun if its job has ended or Slurm does not answer. Then the launcher is not the cause."""
_ORIGIN = re.compile(r"^\[[\w.:@-]+\] *")
"""Host and process that printed a line, such as ``[node1:4711]``.

They are removed, so that ranks with the same reason print the same line.
"""
_CAUSE = re.compile(r"^\w+\(\d+\)\.*: *(\S.*)$", re.MULTILINE)
"""Line of MPICH's error stack that has a text; the last one is the cause."""


class Compiled(msgspec.Struct):
    """An mpibench that was compiled for a campaign.

    Attributes:
        folder: folder of the program.
        mpicc: the compiler of its MPI library.
        settings: section ``mpi`` of the site file.
    """

    folder: str
    mpicc: str
    settings: SiteMpi


class Launch(msgspec.Struct):
    """How the ranks of a campaign start on one node, or on several.

    Attributes:
        way: ``srun`` or ``mpirun``.
        type: type of ``srun --mpi``; empty for mpirun.
        transport: transport that the MPI library reported, such as ``tcp``; empty if it reported
            none.
        failed: ways that were tried before this one, with the reasons why they started no ranks;
            empty if this way was the first.
    """

    way: str
    type: str = ""
    transport: str = ""
    failed: str = ""

    @property
    def text(self) -> str:
        """Return the command that starts the ranks."""
        return f"srun --mpi={self.type}" if self.type else self.way


# -- compiling


def compile_for(campaign: Path, settings: SiteMpi) -> None:
    """Compile mpibench with the MPI library of the site, once for each library.

    Args:
        campaign: folder of the campaign, in which the folder of the program is noted.
        settings: section ``mpi`` of the site file.

    Raises:
        Unavailable: there is no compiler for MPI programs, or the modules cannot be loaded.
        MeasurementError: mpibench does not compile.
    """
    # What kept ranks from starting in an earlier run may be mended.
    for failure in (campaign / FOLDER).glob("no-launch-*"):
        failure.unlink()
    with execute.modules_loaded(settings.modules, settings.environment):
        # No further variables: those of the site are set while the modules are loaded.
        reason = software.why_no_mpi({})
        mpicc = software.mpi_compiler({})
        if reason or mpicc is None:
            raise Unavailable(reason)
        folder = kernel_build.folder() / f"mpi-{_key(mpicc)}"
        if not (folder / KERNELS["mpi"]).is_file():
            _compile(folder, mpicc)
    text = encoded(Compiled(str(folder.resolve()), mpicc, settings))
    # With another library or other settings, ranks may start in another way.
    if _read(campaign, "compiled.json") != text:
        shutil.rmtree(campaign / FOLDER, ignore_errors=True)
        files.write_text(campaign / FOLDER / "compiled.json", text)


def _key(mpicc: str) -> str:
    """Return a digest of the kernels' sources and of the MPI library."""
    changed = Path(mpicc).resolve().stat().st_mtime_ns
    return kernel_build.key(f"{ask(mpicc, '-show')} {mpicc} {changed}".encode())


def _compile(folder: Path, mpicc: str) -> None:
    """Compile mpibench into a folder. Errors: MeasurementError."""
    folder.mkdir(parents=True, exist_ok=True)
    # The sources are copied because make accepts no path with a space. Another run may compile too,
    # so that the finished program is moved. PROBE= skips the test of which instruction sets the
    # compiler knows.
    script = (
        'new=$(mktemp -d -p .); trap \'rm -rf "$new"\' EXIT; cp -r --no-preserve=mode "$1" "$new/src"; '
        f'{kernel_build.MAKE} -C "$new/src" BUILD=.. PROBE= VERSION={__version__} MPICC="$2" ../mpibench '
        '&& mv "$new/mpibench" mpibench'
    )
    sources = str(kernel_build.SOURCES.resolve())
    try:
        done = subprocess.run(
            ["bash", "-c", script, "compile", sources, mpicc],
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMPILE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise MeasurementError(f"mpibench did not compile within {_COMPILE_S:.0f} s") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        reason = lines[0].strip() if lines else f"exit code {done.returncode}"
        raise MeasurementError(
            f"mpibench does not compile with {mpicc}: {reason}",
            "mpi: [] in the configuration leaves MPI out",
        )


def _read(campaign: Path, name: str) -> str:
    """Return the text of a file in the campaign's folder ``mpi``; empty if it is not there."""
    try:
        return (campaign / FOLDER / name).read_text(encoding="utf-8")
    except OSError:
        return ""


def compiled(campaign: Path) -> Compiled:
    """Return what was compiled for a campaign. Errors: MeasurementError if nothing was."""
    text = _read(campaign, "compiled.json")
    if not text:
        raise MeasurementError(
            f"mpibench was not compiled for {campaign}", "start the campaign again"
        )
    return msgspec.json.decode(text, type=Compiled)


def library_loaded(campaign: Path) -> AbstractContextManager[None]:
    """Load the modules and set the variables with which mpibench was compiled for a campaign."""
    settings = compiled(campaign).settings
    return execute.modules_loaded(settings.modules, settings.environment)


# -- starting ranks


@dataclass(frozen=True)
class Starter:
    """Starts the ranks of one cell.

    Attributes:
        campaign: folder of the campaign.
        nodes: nodes of the ranks, this one first; empty outside of a Slurm job.
    """

    campaign: Path
    nodes: Sequence[str]

    def launch(self, folder: Path) -> Launch:
        """Return how ranks start on these nodes. Try the ways only if the campaign has no result.

        Args:
            folder: empty folder for the output of the trials.

        Raises:
            Unavailable: ranks start in no way. This is not tried again for these nodes in the same run.
            MeasurementError: the job has ended, or Slurm does not answer.
        """
        # Ranks on several nodes need a network, so that they may start in another way than ranks on one.
        where = "two nodes" if len(self.nodes) > 1 else "one node"
        name = f"launch-on-{where.replace(' ', '-')}.json"
        known = _read(self.campaign, name)
        if known:
            return msgspec.json.decode(known, type=Launch)
        # A way that starts ranks is kept for all nodes. A failure is kept for these two, whose
        # fault it may be, until ``compile_for`` of the next run removes it.
        failure = f"no-launch-{'-'.join(self.nodes[:2])}"
        reason = _read(self.campaign, failure)
        if not reason:
            found, failed = self._first_that_starts(folder)
            if found:
                found.failed = failed
                files.write_text(self.campaign / FOLDER / name, encoded(found))
                return found
            reason = f"two ranks of MPI do not start on {where}: {failed}"
            if _PASSING.search(reason):  # the job has ended, or Slurm does not answer
                raise MeasurementError(reason)
            files.write_text(self.campaign / FOLDER / failure, reason)
        raise Unavailable(
            reason, "section mpi of the site file chooses another launcher, type or library"
        )

    def _first_that_starts(self, folder: Path) -> tuple[Launch | None, str]:
        """Return the first way that starts two ranks (None if none does), and why the ways before it failed.

        The reasons are one phrase.
        """
        found = None
        reasons: dict[str, list[str]] = {}
        for launch, reason in self.tried(folder):
            if not reason:
                found = launch
                break
            reasons.setdefault(reason, []).append(launch.text)
        failed = [f"{listed(ways)}: {reason}" for reason, ways in reasons.items()]
        return found, "; ".join(failed)

    def ways(self) -> Iterator[Launch]:
        """Yield the ways that the site file allows, the best one first.

        srun needs a Slurm job. Outside of one, mpirun is the only way, also if the site file
        chooses srun.
        """
        settings = compiled(self.campaign).settings
        uses_srun = bool(self.nodes) and settings.launch != "mpirun"
        if uses_srun:
            present = ask("srun", "--mpi=list").split()
            types = [name for name in TYPES if name in present]
            if settings.type:
                types = [settings.type]
            # If srun lists no type, its message on the first one has the reason.
            for name in types or TYPES[:1]:
                yield Launch("srun", name)
        # After srun, mpirun is tried only if the site file chooses neither a launcher nor a type of srun.
        if not uses_srun or not (settings.launch or settings.type):
            yield Launch("mpirun")

    def tried(self, folder: Path) -> Iterator[tuple[Launch, str]]:
        """Try each way and yield it with the reason why it starts no ranks; the reason is empty if it does."""
        for number, launch in enumerate(self.ways()):
            reason = ""
            try:
                self._attempt(launch, folder / str(number))
            except PeakmarkError as error:
                reason = str(error)
            yield launch, reason

    def _attempt(self, launch: Launch, folder: Path) -> None:
        """Let two ranks exchange messages, and set the transport of the launch.

        Raises:
            Unavailable: there is no mpirun.
            MeasurementError: the ranks do not start, or not together.
        """
        if launch.way == "mpirun" and self._mpirun() is None:
            raise Unavailable("not found")
        program = f"{compiled(self.campaign).folder}/{KERNELS['mpi']}"
        words = f"--workload PINGPONG --seconds 0.01 --warmup 0 --timeout {PROBE_S}"
        argv = (program, *words.split())
        ranks = 1 if len(self.nodes) > 1 else 2  # on each node: two ranks in all
        two = replace(self, nodes=self.nodes[:2])
        # mpibench ends by itself after PROBE_S. The launcher has 10 s more.
        command = two.start(Command(argv, PROBE_S + 10.0, ranks=ranks), launch)
        done = _run(command, folder / "plain")
        if done.returncode or _NOT_STARTED.search(done.stderr):
            raise MeasurementError(reason_of(done))
        # Start the ranks again, now with reports of the transport. In the first trial, the reports would have hidden
        # the reason of a failure.
        verbose = replace(command, env={**command.env, **_VERBOSE})
        launch.transport = _transport(_run(verbose, folder / "verbose"))

    def start(self, command: Command, launch: Launch) -> Command:
        """Return the command that starts a program's ranks on the nodes."""
        if launch.way == "srun":
            argv = [*pair.step_of_ranks(self.nodes, command.ranks), f"--mpi={launch.type}"]
            if len(self.nodes) == 1:
                argv.append("--cpu-bind=none")  # mpibench places two ranks on one node by itself
        else:
            argv = self._mpirun_words(command.ranks)
        variables = _job_variables(launch, command.ranks) if self.nodes else {}
        return replace(command, argv=(*argv, *command.argv), env={**command.env, **variables})

    def _mpirun(self) -> str | None:
        """Return the path of the library's mpirun, or None."""
        near = Path(compiled(self.campaign).mpicc).with_name("mpirun")
        return str(near) if near.is_file() else shutil.which("mpirun")

    def _mpirun_words(self, ranks: int) -> list[str]:
        """Return the command of mpirun that starts ``ranks`` ranks on each node."""
        # Outside of a job, all ranks are on this node. mpibench places the ranks of one node by itself.
        path = str(self._mpirun())
        count = ranks * max(1, len(self.nodes))
        if re.search("Open MPI|OpenRTE|PRRTE", ask(path, "--version")):
            # Without overload-allowed, it binds no more ranks than there are cores.
            words = ["-np", str(count), "--map-by", f"ppr:{ranks}:node", "--bind-to"]
            words += ["none" if len(self.nodes) < 2 else "core:overload-allowed"]
            if self.nodes:
                words += ["--host", ",".join(f"{node}:{ranks}" for node in self.nodes)]
            return [path, *words]
        # The others have Hydra: MPICH, MVAPICH, Intel MPI.
        words = ["-n", str(count), "-ppn", str(ranks)]
        if self.nodes:
            words += ["-hosts", ",".join(self.nodes)]
        return [path, *words]


def starter(campaign: Path, count: int, peer: str) -> Starter:
    """Return the starter for ranks on ``count`` nodes of this job, this node first.

    If ``peer`` is not empty, the only other node is ``peer``.
    """
    number = os.environ.get("SLURM_JOB_ID")
    if not number:
        return Starter(campaign, ())
    names = slurm.job_nodes(number)
    chosen = [name for name in names if slurm.is_here(name) or peer in ("", name)]
    chosen.sort(key=slurm.is_here, reverse=True)  # this node first
    return Starter(campaign, chosen[:count])


def try_launchers(campaign: Path) -> Iterator[str]:
    """Try each launcher on two nodes of this job, and yield the JSON of each: [launch, why it fails or ""].

    Args:
        campaign: folder for which ``compile_for`` was called.
    """
    with (
        library_loaded(campaign),
        cleanup.private_directory(files.scratch(None)) as folder,
    ):
        for launch, reason in starter(campaign, 2, "").tried(folder):
            yield encoded((launch, reason))


def _job_variables(launch: Launch, ranks: int) -> dict[str, str]:
    """Return the Slurm variables that a launcher needs to find its job.

    Otherwise programs run without the Slurm variables of their environment.
    """
    if launch.way == "srun":
        known: Mapping[str, str] = pair.environment()
    else:
        # The job has one task on each node, and Open MPI starts no more ranks than tasks: set their
        # number. With SLURM_OVERLAP, the step that mpirun starts shares the CPUs of the job's other
        # steps.
        tasks = f"{ranks}(x{os.environ.get('SLURM_JOB_NUM_NODES', '1')})"
        known = {**os.environ, "SLURM_OVERLAP": "1", "SLURM_TASKS_PER_NODE": tasks}
    return {name: value for name, value in known.items() if name.startswith("SLURM_")}


def _run(command: Command, folder: Path) -> Completed:
    folder.mkdir(parents=True)
    return execute.run(command, folder)


def check(done: Completed, ok_codes: Collection[int]) -> None:
    """Check that the ranks of an ended program started, found each other and ended well.

    Raises:
        Unavailable: the program has another MPI library than the launcher.
        MeasurementError: the ranks did not start, or one of them failed.
    """
    output = "\n".join([done.stdout, done.stderr, *done.files.values()])
    if _ALONE.search(output):
        raise Unavailable(
            "each rank of the program is alone", "install it with the MPI library of mpicc"
        )
    if done.returncode not in ok_codes or _NOT_STARTED.search(done.stderr):
        # One rank has the reason. Launcher and library add lines for each of the others.
        name = execute.program_name(done.argv)
        how = execute.describe_end(done.returncode)
        raise MeasurementError(f"{name} ended with {how}: {reason_of(done)}")


def reason_of(done: Completed) -> str:
    """Return the line of output that says why ranks did not start, or why they ended."""
    if _ALONE.search(done.stderr):
        return "each rank is alone"
    if causes := _CAUSE.findall(done.stderr):
        return str(causes[-1])
    lines = [
        _ORIGIN.sub("", line).strip("- ").rstrip(".")
        for line in (done.stderr + done.stdout).splitlines()
    ]
    # With a private /tmp on each node, Slurm starts the rank in another folder and says so.
    lines = [line for line in lines if line and "couldn't chdir" not in line]
    for pattern in _REASONS:
        for line in lines:
            if re.search(pattern, line):
                return line[:200]
    if lines:
        return lines[0][:200]
    return f"exit code {done.returncode}"


def _transport(done: Completed) -> str:
    """Return the transport in the reports of an MPI library; empty if there is none."""
    for pattern in _REPORTS:
        found = re.findall(pattern, done.stderr + done.stdout)
        if found:
            return str(found[0]).strip()
    return ""


def encoded(known: object) -> str:
    """Return the JSON of a program, a launch or the settings of MPI, for a file, a record or a pipe."""
    return msgspec.json.encode(known).decode()
