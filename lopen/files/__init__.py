"""The files of one project as a session sees them: confined paths, reading, searching, editing, work trees."""
