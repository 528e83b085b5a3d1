"""git: the work tree as a tree id, branches and commits, what keeps them safe from a hostile repository.

Two doors lead to git, and no third. The *references* door uses the repository's own git folder and never looks
at the content of a file of the work tree. The *content* door uses a private git folder whose configuration lopen
wrote itself and only borrows the repository's objects. So whatever a repository's own configuration names as a
filter, a diff driver, a monitor or a signing program never runs.
"""
