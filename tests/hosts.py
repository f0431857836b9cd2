"""Machines of our own: Linux namespaces that each have their own network, processes and disk.

with Network(folder) as network:
    head = network.host("head.example.com")
    head.run(["hostname"])

Each runs an sshd and has a user `ubuntu`. They see each other by name, and nothing else of the
world; this machine sees none of what they do. All of it ends with the `with`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

NEEDED = {
    "ip": "iproute2",
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "rsync": "rsync",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "nsenter": "util-linux",
}
"""Command -> Debian's package."""

BOOT = Path(__file__).with_name("boot_host.sh")
UNSHARE = "setpriv --pdeathsig KILL unshare --mount --net --pid --uts --ipc --fork --kill-child"
PROBE = """
mount -t tmpfs tmpfs /mnt
mkdir /mnt/changes /mnt/work /mnt/seen
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/changes,workdir=/mnt/work /mnt/seen
mount -t proc proc /mnt/seen/proc
ip link add type veth
ip link add type bridge
"""
SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def why_not() -> str | None:
    """Return why this machine cannot hold such hosts; None where it can."""
    missing = [command for command in NEEDED if not shutil.which(command, path=SEARCH)]
    if missing:
        return f"apt-get install {' '.join(sorted({NEEDED[name] for name in missing}))}"
    if os.geteuid():
        return "namespaces with a network and a disk of their own need root"
    made = subprocess.run([*UNSHARE.split(), "sh", "-ec", PROBE], capture_output=True, text=True)
    return f"no namespaces here: {made.stderr.strip()}" if made.returncode else None


class Host:
    """One machine.

    Args:
        name: which the others know it by.
        address: its IPv4 address.
        disk: folder for its /home; the rest of its disk is this machine's, changes in memory.
        shared: folder here -> where it sees it.
    """

    def __init__(
        self, name: str, address: str, disk: Path, shared: Mapping[Path, Path | str]
    ) -> None:
        self.name, self.address = name, address
        disk.mkdir()
        binds = [text for place in shared.items() for text in map(str, place)]
        log = disk.with_name(f"{name}.log")
        self._process = subprocess.Popen(
            [*UNSHARE.split(), "bash", str(BOOT), name, str(disk), *binds],
            stdout=subprocess.PIPE,
            stderr=log.open("w"),
            text=True,
        )
        assert self._process.stdout
        if self._process.stdout.readline() != "ready\n":
            raise AssertionError(f"{name} does not boot: {log.read_text()}")
        children = f"/proc/{self._process.pid}/task/{self._process.pid}/children"
        self.pid = int(Path(children).read_text())

    def enter(self, *only: str) -> list[str]:
        """Return the words before a command that make it run there, as root."""
        spaces = only or ("--mount", "--net", "--pid", "--uts", "--ipc", "--root", "--wd=/")
        return ["nsenter", f"--target={self.pid}", *spaces]

    def run(self, command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command there; fail with what it printed if it does."""
        done = subprocess.run([*self.enter(), *command], capture_output=True, text=True, **options)
        assert done.returncode == 0, f"{self.name}: {command}\n{done.stdout}{done.stderr}"
        return done

    def end(self) -> None:
        """Switch it off, with all it runs."""
        if self._process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)  # the first of its processes: the others go with it
            self._process.wait()


class Network:
    """Hosts that reach each other, the first of them through its bridge.

    Args:
        folder: for the disks of the hosts, which are removed at the end.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hosts: list[Host] = []

    def __enter__(self) -> Network:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for host in self.hosts:
            host.end()

    def host(self, name: str, shared: Mapping[Path, Path | str] | None = None) -> Host:
        """Boot another host."""
        number = len(self.hosts) + 1
        host = Host(name, f"10.77.0.{number}", self.folder / name, shared or {})
        self.hosts.append(host)
        if number == 1:
            self._ip(host, "link add eth0 type bridge")
        else:
            port = f"port{number}"
            self._ip(self.hosts[0], f"link add {port} type veth peer name eth0 netns {host.pid}")
            self._ip(self.hosts[0], f"link set {port} master eth0 up")
        self._ip(host, f"addr add {host.address}/24 dev eth0")
        self._ip(host, "link set eth0 up")
        self._ip(host, "link set lo up")
        names = "".join(f"{each.address} {each.name}\n" for each in self.hosts)
        for each in self.hosts:
            each.run(["tee", "/etc/hosts"], input=f"127.0.0.1 localhost\n{names}")
        return host

    @staticmethod
    def _ip(host: Host, words: str) -> None:
        subprocess.run([*host.enter("--net"), "ip", *words.split()], check=True)
