CREATE TABLE habits (
    session TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    body TEXT NOT NULL  -- lopen.guardrails.habits.Habits as JSON, bounded
);
