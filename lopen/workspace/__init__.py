"""The files of one project as a session sees them: paths that cannot leave it, reading, searching, editing, work trees."""
