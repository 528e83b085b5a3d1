"""Attempts of a command to get out of its sandbox, or at what is protected in it. Data; grows by rows.

A row is a name, the modes that have to withstand it, and a line for the shell. Whatever the line does, the
same things are looked at afterwards (`world.py`): nothing outside changed, no canary came out, protected
files are what they were (where bubblewrap does not hold them, once they were put back), nobody connected to the
host's sockets, no process is left, the bystander lives.
Every row is harmless where it succeeds: it can only reach folders and processes made for the test.

`python -m tests.sandbox.table` runs them all and prints what came of each class.

Words in braces: root, beside (a folder outside that stays visible), outside (one in the temporary folder),
home (the person's), python (an interpreter with its options), token (names a process), bystander (the
number of a process outside), port (of a listener on the host's loopback), socket and beside_socket (paths
of listeners), abstract (the name of an abstract one).
"""

from __future__ import annotations

from tests.sandbox.rows import ALL, CONFINED, STRONG, Attempt
from tests.sandbox.rows import rows as _rows
from tests.sandbox.tricks import TRICKS

WRITING_OUTSIDE = _rows(
    CONFINED,
    r"""
    new file outside :: echo HACK > {beside}/new
    append to a file outside :: echo HACK >> {beside}/file
    delete a file outside :: rm -f {beside}/file
    delete a folder outside :: rm -rf {beside}
    move a file in from outside :: mv {beside}/file stolen
    move a file out :: mv src/app.py {beside}/app.py
    new folder outside :: mkdir {beside}/folder
    new link outside :: ln -s /etc {beside}/link
    new pipe outside :: mkfifo {beside}/pipe
    hard link to a file outside :: ln {beside}/file hard && echo HACK > hard
    hard link of a file to the outside :: ln src/app.py {beside}/hard
    truncate a file outside :: truncate -s 0 {beside}/file
    copy over a file outside :: cp src/app.py {beside}/file
    dd over a file outside :: dd if=src/app.py of={beside}/file conv=notrunc
    tee into a file outside :: echo HACK | tee {beside}/file
    edit a file outside in place :: sed -i s/./X/ {beside}/file
    rename within the outside :: mv {beside}/file {beside}/other
    swap names outside :: cp {beside}/file x; mv x {beside}/file
    through a link to a folder :: ln -s {beside} out; echo HACK > out/new
    through a link to a file :: ln -s {beside}/file out; echo HACK > out
    through a relative link :: ln -s ../../../../../../../../../..{beside} out; echo HACK > out/new
    through a chain of links :: ln -s {beside} a; ln -s a b; ln -s b c; echo HACK > c/new
    from a working folder outside :: cd {beside} && echo HACK > new
    by way of parents :: echo HACK > ../../../../../../../../../..{beside}/new
    by way of proc's root :: echo HACK > /proc/self/root{beside}/new
    by way of the first process's root :: echo HACK > /proc/1/root{beside}/new
    by way of the parent's root :: echo HACK > /proc/$PPID/root{beside}/new
    by way of proc's working folder :: cd {beside}; echo HACK > /proc/self/cwd/new
    by way of the bystander's root :: echo HACK > /proc/{bystander}/root{beside}/new
    by way of the bystander's folder :: echo HACK > /proc/{bystander}/cwd/new
    by way of the bystander's open file :: echo HACK > /proc/{bystander}/fd/3
    through an open folder :: {python} 'import os; d = os.open("{beside}", os.O_RDONLY); os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=d)'
    reopened through a descriptor :: exec 5< {beside}/file; echo HACK > /proc/self/fd/5
    with a link swapped in a loop :: mkdir d; for i in 1 2 3 4 5 6 7 8 9; do ln -sfn {beside} l; echo HACK > l/new; ln -sfn d l; done
    remount the root :: mount -o remount,rw /; echo HACK > {beside}/new
    remount the folder :: mount -o remount,rw {beside}; echo HACK > {beside}/new
    bind the folder into the project :: mkdir m; mount --bind {beside} m; echo HACK > m/new
    mount over the folder :: mount -t tmpfs none {beside}; echo HACK > {beside}/new
    a user namespace of its own :: unshare -Ur sh -c 'echo HACK > {beside}/new'
    a mount namespace of its own :: unshare -Urm sh -c 'mount -o remount,rw /; echo HACK > {beside}/new'
    a bind in a namespace of its own :: mkdir m; unshare -Urm sh -c 'mount --rbind / m; echo HACK > m{beside}/new'
    a pivot in a namespace of its own :: mkdir m; unshare -Urm sh -c 'mount --bind m m; cd m; mkdir o; pivot_root . o; echo HACK > /o{beside}/new'
    into the host's namespace :: nsenter -t 1 -m sh -c 'echo HACK > {beside}/new'
    into the bystander's namespace :: nsenter -t {bystander} -m -p sh -c 'echo HACK > {beside}/new'
    a root of its own :: chroot /proc/1/root sh -c 'echo HACK > {beside}/new'
    another sandbox inside :: bwrap --bind / / sh -c 'echo HACK > {beside}/new'
    a program with the owner's rights :: cp /bin/sh s; chmod 4755 s; ./s -p -c 'echo HACK > {beside}/new'
    a repository outside :: git init -q {beside}/repository
    a clone outside :: git clone -q . {beside}/clone
    an archive unpacked outside :: tar cf a.tar src; tar xf a.tar -C {beside}
    an archive with parents :: {python} 'import tarfile, io; t = tarfile.open("a.tar", "w"); i = tarfile.TarInfo("../" * 12 + "{beside}/new"); t.addfile(i, io.BytesIO())'; tar xPf a.tar
    a hook outside :: git -c core.hooksPath={beside} config --file {beside}/config a.b c
    the person's shell start :: echo HACK >> {home}/.bashrc
    the person's keys :: mkdir -p {home}/.ssh; echo HACK >> {home}/.ssh/authorized_keys
    the person's git configuration :: git config --file {home}/.gitconfig core.pager HACK
    a program on the person's path :: echo HACK > {home}/.cargo/bin/cargo; rm -f {home}/.cargo/bin/tool
    a new program on the person's path :: echo HACK > {home}/.cargo/bin/git
    lopen's configuration :: mkdir -p {home}/.config/lopen; echo HACK > {home}/.config/lopen/config.toml
    the temporary folder's files :: echo HACK > {outside}/secret.txt
    new in the temporary folder :: mkdir -p {outside}; echo HACK > {outside}/new
    """,
)

META_OUTSIDE = _rows(
    STRONG,
    r"""
    permissions outside :: chmod 777 {beside}/file
    permissions of a folder outside :: chmod 777 {beside}
    times outside :: touch -d 2001-01-01 {beside}/file
    owner outside :: chown 1:1 {beside}/file
    """,
)

READING_SECRETS = _rows(
    CONFINED,
    r"""
    ssh key :: cat {home}/.ssh/id_rsa
    cloud credentials :: cat {home}/.aws/credentials
    netrc :: cat {home}/.netrc
    github's token :: cat {home}/.config/gh/hosts.yml
    docker's logins :: cat {home}/.docker/config.json
    kubernetes' logins :: cat {home}/.kube/config
    npm's token :: cat {home}/.npmrc
    pypi's token :: cat {home}/.pypirc
    git's stored passwords :: cat {home}/.git-credentials
    gpg's keys :: cat {home}/.gnupg/secring
    cargo's token beside its programs :: cat {home}/.cargo/credentials.toml
    cargo's token by a loop :: for f in {home}/.cargo/*; do cat $f; done
    Claude's own :: cat {home}/.claude.json {home}/.claude/.credentials.json
    lopen's own :: cat {home}/.config/lopen/token
    shell history :: cat {home}/.bash_history
    any file of the home :: cat {home}/private.txt
    everything in the home :: grep -r CANARY {home}
    the home copied :: cp -r {home} copy; grep -r CANARY copy
    the home archived :: tar cf - {home}
    a key through a link :: ln -s {home}/.ssh/id_rsa k; cat k
    a key through a hard link :: ln {home}/.ssh/id_rsa k; cat k
    through proc's root :: cat /proc/self/root{home}/.ssh/id_rsa
    through the first process's root :: cat /proc/1/root{home}/.ssh/id_rsa
    through the bystander's root :: cat /proc/{bystander}/root{home}/.ssh/id_rsa
    through the bystander's folder :: cat /proc/{bystander}/cwd/secret.txt
    through the bystander's open file :: cat /proc/{bystander}/fd/3
    the bystander's environment :: cat /proc/{bystander}/environ
    every environment :: grep -a -o 'CANARY-BYS[A-Z]*' /proc/[0-9]*/environ
    the bystander's memory :: {python} 'open("/proc/{bystander}/mem", "rb"); print("CANARY" + "-MEMORY")'
    the bystander traced :: {python} 'import ctypes; l = ctypes.CDLL(None); l.ptrace(16, {bystander}, 0, 0) == 0 and print("CANARY" + "-TRACED")'
    through git :: git diff --no-index /dev/null {home}/.ssh/id_rsa
    through git's ignore file :: git -c core.excludesFile={home}/.netrc check-ignore -v CANARY-HOME
    through the shell :: . {home}/.netrc
    through a here document :: while read l; do echo "$l"; done < {home}/.netrc
    mounted elsewhere :: mkdir m; mount --bind {home} m; cat m/.ssh/id_rsa
    mounted in a namespace :: mkdir m; unshare -Urm sh -c 'mount --bind {home} m; cat m/.ssh/id_rsa'
    uncovered :: umount -l {home}; cat {home}/.ssh/id_rsa
    uncovered in a namespace :: unshare -Urm sh -c 'umount -l {home}; umount -l /tmp; cat {home}/.ssh/id_rsa'
    by way of the host's namespace :: nsenter -t 1 -m cat {home}/.ssh/id_rsa
    a file of the temporary folder :: cat {outside}/secret.txt
    everything in the temporary folder :: grep -r CANARY {outside}
    """,
)

ENVIRONMENT = _rows(
    ALL,
    r"""
    the environment :: env
    exported variables :: export -p
    all the shell's variables :: set
    the environment as the kernel has it :: tr '\0' '\n' < /proc/self/environ
    the environment of a child :: sh -c env
    the environment by an interpreter :: {python} 'import os; print(dict(os.environ))'
    the key by name :: echo $ANTHROPIC_API_KEY $GITHUB_TOKEN $AWS_SECRET_ACCESS_KEY
    the database by name :: echo $DATABASE_URL $PLAIN_NAME
    the proxy's password :: echo $HTTPS_PROXY $HTTP_PROXY
    a preloaded library :: echo $LD_PRELOAD $LD_LIBRARY_PATH $PYTHONPATH $NODE_OPTIONS $BASH_ENV $GIT_DIR
    the agent's socket :: echo $SSH_AUTH_SOCK $DBUS_SESSION_BUS_ADDRESS
    input that is not there :: cat; read x; echo $x
    """,
)

PROTECTED = _rows(
    ALL,
    r"""
    write the specification :: echo HACK > specs/auth/SPECIFICATION.md
    append to the specification :: echo HACK >> specs/auth/SPECIFICATION.md
    truncate the specification :: : > specs/auth/SPECIFICATION.md
    delete the specification :: rm -f specs/auth/SPECIFICATION.md
    edit the specification in place :: sed -i s/Auth/HACK/ specs/auth/SPECIFICATION.md
    replace the specification :: echo HACK > x; mv -f x specs/auth/SPECIFICATION.md
    replace it without notice :: {python} 'import os; open("x", "w").write("HACK"); os.replace("x", "specs/auth/SPECIFICATION.md")'
    the same size and times :: touch -r specs/auth/SPECIFICATION.md t; tr a-z A-Z < specs/auth/SPECIFICATION.md > x; cat x > specs/auth/SPECIFICATION.md; touch -r t specs/auth/SPECIFICATION.md
    rename the specification :: mv specs/auth/SPECIFICATION.md specs/auth/old.md
    a link in its place :: ln -sf ../../src/app.py specs/auth/SPECIFICATION.md
    a folder in its place :: rm -f specs/auth/SPECIFICATION.md; mkdir specs/auth/SPECIFICATION.md
    a pipe in its place :: rm -f specs/auth/SPECIFICATION.md; mkfifo specs/auth/SPECIFICATION.md
    through a hard link :: ln specs/auth/SPECIFICATION.md h; echo HACK > h
    through a link :: ln -s specs/auth/SPECIFICATION.md l; echo HACK > l
    through a link to its folder :: ln -s specs/auth l; echo HACK > l/SPECIFICATION.md
    its permissions :: chmod 000 specs/auth/SPECIFICATION.md
    rename its folder :: mv specs/auth specs/other
    rename its folder and make another :: mv specs/auth specs/other; mkdir specs/auth; echo HACK > specs/auth/SPECIFICATION.md
    rename all specifications :: mv specs s2; mkdir -p specs/auth; echo HACK > specs/auth/SPECIFICATION.md
    delete all specifications :: rm -rf specs
    a link in place of the specifications :: mv specs s2; mkdir -p e/auth; echo HACK > e/auth/SPECIFICATION.md; ln -s e specs
    a link in place of its folder :: mv specs/auth specs/a2; ln -s ../src specs/auth; echo HACK > src/SPECIFICATION.md
    another module's specification :: mkdir -p specs/new; echo HACK > specs/new/SPECIFICATION.md
    a nested one :: mkdir -p specs/auth/deep/er; echo HACK > specs/auth/deep/er/SPECIFICATION.md
    another module by a link :: mkdir e; echo HACK > e/SPECIFICATION.md; ln -s ../e specs/evil
    exchange two folders :: mkdir -p e/auth; echo HACK > e/auth/SPECIFICATION.md; {python} 'import ctypes; ctypes.CDLL(None).renameat2(-100, b"specs", -100, b"e", 2)'
    write while it is read only :: chmod +w specs/auth/SPECIFICATION.md; echo HACK > specs/auth/SPECIFICATION.md
    write by mapping :: {python} 'import mmap; f = open("specs/auth/SPECIFICATION.md", "r+b"); m = mmap.mmap(f.fileno(), 0); m[0:1] = b"X"'
    the project's settings of lopen :: echo HACK > .lopen/config.toml
    delete lopen's settings :: rm -f .lopen/config.toml
    replace lopen's settings by a link :: ln -sf ../src/app.py .lopen/config.toml
    rename lopen's folder :: mv .lopen .lopen2; mkdir .lopen; echo HACK > .lopen/config.toml
    settings of Claude Code :: echo HACK > .claude/settings.json
    delete them :: rm -f .claude/settings.json
    local settings, not there yet :: echo HACK > .claude/settings.local.json
    rename their folder :: mv .claude .c2; mkdir .claude; echo HACK > .claude/settings.json
    a link in place of their folder :: mv .claude .c2; mkdir e; echo HACK > e/settings.json; ln -s e .claude
    delete their folder :: rm -rf .claude
    all protected files at once :: find . -name SPECIFICATION.md -exec sh -c 'echo HACK > $1' _ {{}} \; ; echo HACK > .lopen/config.toml; echo HACK > .claude/settings.json
    """,
)

PROTECTED += _rows(
    CONFINED,  # a mount of root's without a sandbox is a mount of the machine's
    r"""
    by mounting over it :: mount --bind src/app.py specs/auth/SPECIFICATION.md
    by unmounting it :: umount -l specs/auth/SPECIFICATION.md; umount -l specs; echo HACK > specs/auth/SPECIFICATION.md
    by remounting it :: mount -o remount,rw,bind specs/auth/SPECIFICATION.md; echo HACK > specs/auth/SPECIFICATION.md
    """,
)

GIT_AND_STATE = (
    _rows(
        ALL,
        r"""
    git's configuration :: echo HACK >> .git/config
    git's configuration by git :: git config core.fsmonitor /tmp/HACK
    a hook :: echo HACK > .git/hooks/post-commit; chmod +x .git/hooks/post-commit
    the head :: echo 'ref: refs/heads/HACK' > .git/HEAD
    a commit :: git -c user.name=a -c user.email=a@b commit -q --allow-empty -m HACK
    a branch :: git branch HACK
    a switch :: git checkout -q -b HACK
    a reset :: git reset -q --hard
    a reference :: git update-ref refs/heads/HACK HEAD
    a stash :: git -c user.name=a -c user.email=a@b stash -q -u
    attributes :: echo '* filter=x' > .git/info/attributes
    git through a link :: ln -s .git g; echo HACK > g/config
    """,
    )
    + _rows(
        CONFINED,
        r"""
    a second work tree :: git worktree add -q {beside}/w HEAD
    """,
    )
    + _rows(
        STRONG,
        r"""
    an object :: echo HACK | git hash-object -w --stdin
    a lock :: touch .git/index.lock
    the index :: git add -A; git rm -q --cached src/app.py
    the objects :: rm -rf .git/objects
    all of it :: rm -rf .git
    another in its place :: mv .git g2; git init -q
    a file in its place :: mv .git g2; echo 'gitdir: e' > .git
    collected :: git gc -q --prune=now
    a folder of its own for git :: git init -q --separate-git-dir={beside}/g .
    lopen's database :: echo HACK > .lopen/state.db
    delete lopen's database :: rm -f .lopen/state.db*
    lopen's database by a journal :: echo HACK > .lopen/state.db-journal; echo HACK > .lopen/state.db-wal
    lopen's folder :: rm -rf .lopen
    lopen's plan :: mkdir -p .lopen/modules/auth; echo HACK > .lopen/modules/auth/plan.md
    lopen's cache turned into a link :: rm -rf .lopen/cache/home; ln -s {beside} .lopen/cache/home
    """,
    )
)

NETWORK = _rows(
    STRONG,
    r"""
    the host's loopback :: {python} 'import socket; socket.create_connection(("127.0.0.1", {port}), 2)'
    the host's loopback by IPv6 :: {python} 'import socket; socket.create_connection(("::ffff:127.0.0.1", {port}), 2)'
    the host's loopback by any address :: {python} 'import socket; socket.create_connection(("0.0.0.0", {port}), 2)'
    the host's loopback by name :: {python} 'import socket; socket.create_connection(("localhost", {port}), 2)'
    a socket in the temporary folder :: {python} 'import socket; socket.socket(socket.AF_UNIX).connect("{socket}")'
    a socket in a visible folder :: {python} 'import socket; socket.socket(socket.AF_UNIX).connect("{beside_socket}")'
    a socket through a link :: ln -s {beside_socket} s; {python} 'import socket; socket.socket(socket.AF_UNIX).connect("s")'
    a socket through proc's root :: {python} 'import socket; socket.socket(socket.AF_UNIX).connect("/proc/self/root{beside_socket}")'
    the host's network namespace :: nsenter -t {bystander} -n true && echo CANARY-NET
    a network of its own made outside :: ip link add x type dummy && echo CANARY-NET
    """,
) + _rows(
    CONFINED,
    r"""
    an abstract socket :: {python} 'import socket; socket.socket(socket.AF_UNIX).connect("\0{abstract}")'
    """,
)

PROCESSES = _rows(
    ALL,
    r"""
    in the background :: sleep {token} &
    many in the background :: for i in 1 2 3 4 5 6 7 8; do sleep {token} & done
    without hangup :: nohup sleep {token} > /dev/null 2>&1 &
    in a session of its own :: setsid sleep {token} &
    in a session of its own, forked :: setsid -f sleep {token}
    without streams :: setsid -f sleep {token} > /dev/null 2>&1 < /dev/null
    twice forked :: (setsid sh -c 'sleep {token} & exit' &)
    a true daemon :: {python} 'import os; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); os.execvp("sleep", ["sleep", "{token}"])'
    three generations of sessions :: setsid -f setsid -f setsid -f sleep {token}
    deaf to signals :: (trap '' TERM HUP INT; sleep {token}) &
    stopped :: sleep {token} & kill -STOP $!
    one that starts anew :: setsid -f sh -c 'for i in 1 2 3 4 5 6 7 8 9; do sleep {token}; done'
    under another name :: setsid -f {python} 'import os; os.execv("/bin/sleep", ["innocent", "{token}"])'
    a parent that waits :: setsid -f sh -c 'sleep {token} & wait'
    holding the output open :: sleep {token} & echo done
    """,
) + _rows(
    CONFINED,
    r"""
    ending the bystander :: kill -9 {bystander}
    stopping the bystander :: kill -STOP {bystander}
    ending the bystander by an interpreter :: {python} 'import os; os.kill({bystander}, 9)'
    ending the bystander by its descriptor :: {python} 'import os, signal; signal.pidfd_send_signal(os.pidfd_open({bystander}), 9)'
    ending the bystander's group :: {python} 'import os; os.killpg({bystander}, 9)'
    """,
)

KERNEL = _rows(
    STRONG,
    r"""
    a kernel setting :: v=$(cat /proc/sys/vm/swappiness); echo $v > /proc/sys/vm/swappiness && echo CANARY-KERNEL
    a kernel setting by a namespace :: v=$(cat /proc/sys/vm/swappiness); unshare -Ur sh -c "echo $v > /proc/sys/vm/swappiness" && echo CANARY-KERNEL
    a setting of the host's name :: unshare -Uru hostname x && echo CANARY-KERNEL
    a device of its own :: mknod d c 1 3 && echo CANARY-KERNEL
    a fresh proc :: mkdir p; mount -t proc p p && echo CANARY-KERNEL
    more capabilities :: grep -q 'CapBnd:.*[1-9a-f]' /proc/self/status && echo CANARY-KERNEL
    the terminal :: echo x > /dev/tty && echo CANARY-KERNEL
    limiting the bystander :: {python} 'import resource; resource.prlimit({bystander}, resource.RLIMIT_NOFILE, (64, 64)); print("CANARY" + "-KERNEL")'
    the marker of the session :: rm -f /run/lopen-session; ln -sfn other /run/lopen-session; readlink /run/lopen-session | grep -q world || echo CANARY-MARKER
    the marker mounted over :: mount -t tmpfs none /run; umount -l /run; readlink /run/lopen-session | grep -q world || echo CANARY-MARKER
    """,
)

CLASSES: dict[str, list[Attempt]] = {
    "writing outside": WRITING_OUTSIDE,
    "owners and permissions outside": META_OUTSIDE,
    "reading credentials": READING_SECRETS,
    "the environment": ENVIRONMENT,
    "protected paths": PROTECTED,
    "git and lopen's state": GIT_AND_STATE,
    "network and sockets": NETWORK,
    "processes": PROCESSES,
    "the kernel": KERNEL,
    **TRICKS,
}

ATTEMPTS: list[Attempt] = [attempt for attempts in CLASSES.values() for attempt in attempts]
