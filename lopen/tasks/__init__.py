"""The task tree: module → component → task → subtask, its states and its queries. Pure."""
