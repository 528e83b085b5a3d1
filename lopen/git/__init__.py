"""git: snapshots of the work tree, branches and commits, and protection from a hostile repository.

lopen works in a clone whose configuration it wrote, and overrides every setting by which git starts a program. Content
filters that only the person's repository configures are switched off there. So no filter, diff driver, hook, monitor or
signing program of a repository's own configuration ever runs.
"""
