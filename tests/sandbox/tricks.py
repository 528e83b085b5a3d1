"""More rows for the table of `escapes.py`: archives, git's variables, the kernel's lesser doors.

Rows are as there. `lopen` in braces is the number of the process that runs the sandbox, `uring` a program that
opens a file by io_uring.
"""

from __future__ import annotations

from tests.sandbox.rows import ALL, CONFINED, STRONG, rows

_TAR = 'import tarfile, io; t = tarfile.open("a.tar", "w"); A = t.addfile; I = tarfile.TarInfo; F = lambda n: (lambda i: (setattr(i, "size", 4), A(i, io.BytesIO(b"HACK"))))(I(n)); L = lambda n, k, to: (lambda i: (setattr(i, "type", k), setattr(i, "linkname", to), A(i)))(I(n)); '
_ALL = '; t.close(); tarfile.open("a.tar").extractall(".", filter="fully_trusted")'
_ZIP = 'import zipfile; z = zipfile.ZipFile("a.zip", "w"); '


def _archive(text: str) -> str:
    return text.replace("TAR ", _TAR).replace(" ALL", _ALL).replace("ZIP ", _ZIP)


ARCHIVES = rows(
    CONFINED,
    _archive(r"""
    tar with parents, extracted trustingly :: {python} 'TAR F("../" * 12 + "{beside}/new") ALL'
    tar with an absolute name :: {python} 'TAR F("{beside}/new") ALL'
    tar with an absolute name over a file :: {python} 'TAR F("{beside}/file") ALL'
    tar with a link and a member below it :: {python} 'TAR L("l", tarfile.SYMTYPE, "{beside}"); F("l/new") ALL'
    tar with a chain of links :: {python} 'TAR L("a", tarfile.SYMTYPE, "{beside}"); L("b", tarfile.SYMTYPE, "a"); F("b/new") ALL'
    tar with a link written over :: {python} 'TAR L("l", tarfile.SYMTYPE, "{beside}/file") ALL'; echo HACK > l
    tar with a hard link out :: {python} 'TAR L("h", tarfile.LNKTYPE, "{beside}/file") ALL'; echo HACK > h
    tar with a hard link to a key :: {python} 'TAR L("h", tarfile.LNKTYPE, "{home}/.netrc") ALL'; cat h
    tar with a link to a key :: {python} 'TAR L("l", tarfile.SYMTYPE, "{home}/.netrc") ALL'; cat l
    tar by the system's tar, names as they are :: {python} 'TAR F("{beside}/new"); t.close()'; tar xPf a.tar
    tar by the system's tar, a link first :: {python} 'TAR L("l", tarfile.SYMTYPE, "{beside}"); F("l/new"); t.close()'; tar xPf a.tar; tar xf a.tar --keep-directory-symlink
    tar with a program to compress :: tar cf {beside}/a.tar -I 'sh -c "echo HACK > {beside}/new"' src
    tar with a checkpoint :: tar cf a.tar --checkpoint=1 --checkpoint-action=exec='echo HACK > {beside}/new' src
    tar with a folder's place changed :: tar cf - src | tar xf - --one-top-level={beside}/new
    tar with names transformed :: tar cf - src | tar xPf - --transform 's,^,{beside}/,'
    zip with parents :: {python} 'ZIP z.writestr("../" * 12 + "{beside}/new", "HACK"); z.close()'; unzip -o -: a.zip
    zip with an absolute name :: {python} 'ZIP z.writestr("{beside}/new", "HACK"); z.close()'; unzip -o -: a.zip; {python} 'import zipfile; z = zipfile.ZipFile("a.zip"); [open(n, "wb").write(z.read(n)) for n in z.namelist()]'
    zip with a link and a member below it :: {python} 'ZIP i = zipfile.ZipInfo("l"); i.create_system = 3; i.external_attr = 0o120777 << 16; z.writestr(i, "{beside}"); z.writestr("l/new", "HACK"); z.close()'; unzip -o a.zip; echo HACK > l/new
    zip into the outside :: zip -q -r {beside}/a.zip src
    """),
)

GIT_TRICKS = rows(
    CONFINED,
    r"""
    a git folder outside by its variable :: GIT_DIR={beside}/g git init -q
    a work tree outside by its variable :: GIT_WORK_TREE={beside} git checkout-index -f -a
    objects outside by their variable :: mkdir -p {beside}/o; GIT_OBJECT_DIRECTORY={beside}/o git hash-object -w src/app.py
    an index outside by its variable :: GIT_INDEX_FILE={beside}/i git read-tree HEAD
    a trace outside by its variable :: GIT_TRACE={beside}/new git status
    a configuration outside by its variable :: GIT_CONFIG_GLOBAL={beside}/new git config --global a.b c
    a transport of its own by its variable :: GIT_SSH_COMMAND='echo HACK > {beside}/new #' git ls-remote ssh://x/y
    a transport that is a program :: git -c protocol.ext.allow=always ls-remote 'ext::sh -c echo% HACK% >% {beside}/new'
    a patch with parents :: printf -- '--- /dev/null\n+++ b/../../../../../../../..{beside}/new\n@@ -0,0 +1 @@\n+HACK\n' | git apply --unsafe-paths
    a patch into a folder outside :: printf -- '--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+HACK\n' | git apply --unsafe-paths --directory={beside}
    an archive outside by git :: git archive -o {beside}/a.tar HEAD
    a bundle outside by git :: git bundle create {beside}/b HEAD
    patches outside by git :: git format-patch -q --root -o {beside} HEAD
    a key by an alternate :: GIT_ALTERNATE_OBJECT_DIRECTORIES={home}/.ssh git cat-file -p HEAD:x; git hash-object --stdin < {home}/.netrc && git diff --no-index /dev/null {home}/.netrc
    a key as configuration :: GIT_CONFIG_GLOBAL={home}/.netrc git config --list | tr a-z A-Z
    """,
)

VARIABLES = rows(
    CONFINED,
    r"""
    the linker's notes outside :: LD_DEBUG=files LD_DEBUG_OUTPUT={beside}/new /bin/true
    bytecode outside :: PYTHONPYCACHEPREFIX={beside}/new python3 -c 'import sys; sys.path.insert(0, "src"); import app'
    the temporary folder outside :: TMPDIR={beside} mktemp
    the shell's history outside :: HISTFILE={beside}/file bash -i -c 'history -s HACK; history -w'
    another home :: HOME={home} git config --global core.pager HACK
    another home read :: HOME={home}; cat ~/.netrc ~/.ssh/id_rsa
    a key as the shell's start :: BASH_ENV={home}/.netrc bash -c true
    a key as the shell's start, interactively :: ENV={home}/.netrc sh -i -c true
    a key as a library :: LD_PRELOAD={home}/.ssh/id_rsa /bin/true; LD_LIBRARY_PATH={home} /bin/cat {home}/.netrc
    a key as Python's start :: cp {home}/.netrc s.py; PYTHONSTARTUP={home}/.netrc python3 -c 1; cat s.py
    """,
)

OTHER_PROCESSES = rows(
    CONFINED,
    r"""
    lopen's environment :: grep -q . /proc/{lopen}/environ && echo CANARY-LOPEN
    lopen's memory :: {python} 'open("/proc/{lopen}/mem", "rb"); print("CANARY" + "-LOPEN")'
    lopen's maps :: grep -q . /proc/{lopen}/maps && echo CANARY-LOPEN
    lopen's root :: cat /proc/{lopen}/root{home}/.netrc
    lopen's working folder :: ls /proc/{lopen}/cwd/ && echo CANARY-LOPEN
    lopen's open files :: cat /proc/{lopen}/fd/* && echo CANARY-LOPEN
    lopen traced :: {python} 'import ctypes; l = ctypes.CDLL(None); l.ptrace(0x4206, {lopen}, 0, 0) == 0 and print("CANARY" + "-LOPEN")'
    lopen signalled :: kill -0 {lopen} && echo CANARY-LOPEN
    the bystander's memory by vectors :: {python} 'import ctypes; b = ctypes.create_string_buffer(8); v = (ctypes.c_size_t * 2)(ctypes.addressof(b), 8); l = ctypes.CDLL(None); m = int(open("/proc/{bystander}/maps").read().split("-")[0], 16); r = (ctypes.c_size_t * 2)(m, 8); l.process_vm_readv({bystander}, v, 1, r, 1, 0) > 0 and print("CANARY" + "-VECTOR")'
    the bystander's file by its descriptor :: {python} 'import ctypes, os; l = ctypes.CDLL(None); f = l.syscall(438, os.pidfd_open({bystander}), 3, 0); f > 0 and print(os.pread(f, 99, 0))'
    the bystander's namespace by its descriptor :: {python} 'import ctypes, os; l = ctypes.CDLL(None); l.setns(os.pidfd_open({bystander}), 0x20000) == 0 and print(open("{home}/.netrc").read())'
    descriptors left open :: {python} 'import os; left = [f for f in os.listdir("/proc/self/fd") if int(f) > 3]; left and print("CANARY" + "-FD", left)'
    """,
)

PRIVILEGES = rows(
    CONFINED,
    r"""
    the owner's rights by both bits :: cp /bin/sh s; chmod 6755 s; ./s -p -c 'cat {home}/.netrc'
    the superuser by number :: {python} 'import os; os.setgid(0); os.setuid(0); print(open("{home}/.netrc").read())'
    the superuser by sudo :: sudo -n cat {home}/.netrc
    the superuser by su :: su -c 'cat {home}/.netrc' < /dev/null
    the superuser of a namespace :: unshare -Ur --map-root-user cat {home}/.netrc
    a capability of a file :: cp /bin/cat c; setcap cap_dac_read_search+ep c; ./c {home}/.netrc
    an overlay of the home :: mkdir -p u w m; unshare -Urm sh -c 'mount -t overlay o -o lowerdir={home},upperdir=u,workdir=w m; cat m/.netrc'
    a tree cloned by its call :: {python} 'import ctypes, os; l = ctypes.CDLL(None); f = l.syscall(428, -100, b"{home}", 0x80001); f > 0 and print(open(os.open(".netrc", 0, dir_fd=f)).read())'
    io_uring writing outside :: {uring} {beside}/new HACK
    io_uring writing over a file :: {uring} {beside}/file HACK
    """,
)

DEVICES = rows(
    STRONG,
    r"""
    a disk of its own :: mknod d b 7 0 && echo CANARY-DEVICE
    the disks :: ls /dev/sd* /dev/vd* /dev/nvme* /dev/loop* 2>/dev/null | grep -q . && echo CANARY-DEVICE
    the memory :: head -c 1 /dev/mem > m && echo CANARY-DEVICE
    the kernel's log :: test -c /dev/kmsg && : > /dev/kmsg && echo CANARY-DEVICE
    the file systems of users :: : < /dev/fuse && echo CANARY-DEVICE
    the console :: test -c /dev/tty0 && : > /dev/tty0 && echo CANARY-DEVICE
    what crashes run :: v=$(cat /proc/sys/kernel/core_pattern); echo "$v" > /proc/sys/kernel/core_pattern && echo CANARY-KERNEL
    a control group :: mkdir /sys/fs/cgroup/lopen-test && rmdir /sys/fs/cgroup/lopen-test && echo CANARY-KERNEL
    the system's own view mounted :: mkdir s; mount -t sysfs s s && echo CANARY-KERNEL
    the message bus :: {python} 'import socket; socket.socket(socket.AF_UNIX).connect("/run/dbus/system_bus_socket"); print("CANARY" + "-BUS")'
    the container engine :: {python} 'import socket; socket.socket(socket.AF_UNIX).connect("/var/run/docker.sock"); print("CANARY" + "-BUS")'
    """,
) + rows(
    ALL,
    r"""
    a key pressed for the person :: {python} 'import fcntl, termios; fcntl.ioctl(open("/dev/tty"), termios.TIOCSTI, b"x"); print("CANARY" + "-KEY")'
    a key pressed on what is open :: {python} 'import fcntl, termios; [fcntl.ioctl(n, termios.TIOCSTI, b"x") for n in (0, 1, 2)]; print("CANARY" + "-KEY")'
    text pasted by the console's call :: {python} 'import fcntl; fcntl.ioctl(0, 0x541C, b"\x03"); print("CANARY" + "-KEY")'
    """,
)

PROTECTED_TRICKS = rows(
    ALL,
    _archive(r"""
    an archive over the specification :: {python} 'TAR F("specs/auth/SPECIFICATION.md") ALL'
    an archive with a link in its place :: rm -f specs/auth/SPECIFICATION.md; {python} 'TAR L("specs/auth/SPECIFICATION.md", tarfile.SYMTYPE, "../../src/app.py") ALL'
    an archive with another specification :: {python} 'TAR F("specs/new/SPECIFICATION.md") ALL'
    a patch over the specification :: printf -- '--- a/specs/auth/SPECIFICATION.md\n+++ b/specs/auth/SPECIFICATION.md\n@@ -1 +1 @@\n-# Auth\n+# HACK\n' | git apply
    a zip over lopen's settings :: {python} 'ZIP z.writestr(".lopen/config.toml", "HACK"); z.extractall(".") if 0 else z.close(); zipfile.ZipFile("a.zip").extractall(".")'
    installed over it :: install -m 644 src/app.py specs/auth/SPECIFICATION.md
    a hole punched into it :: fallocate -p -o 0 -l 2 specs/auth/SPECIFICATION.md; truncate -s 100 specs/auth/SPECIFICATION.md
    """),
)

TRICKS = {
    "archives": ARCHIVES,
    "git's variables and transports": GIT_TRICKS,
    "variables": VARIABLES,
    "other processes": OTHER_PROCESSES,
    "privileges": PRIVILEGES,
    "devices and terminals": DEVICES,
    "protected paths, by tools": PROTECTED_TRICKS,
}
