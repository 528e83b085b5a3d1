"""git: snapshots of the work tree, branches and commits, and protection from a hostile repository.

lopen runs git in exactly two ways, called doors. The *references* door uses the repository's own git folder and
never reads a file of the work tree. The *content* door uses a private git folder with a configuration that lopen
wrote, and borrows only the repository's objects. So no filter, diff driver, monitor or signing program of the
repository's own configuration ever runs.
"""
