"""Records as something to read: a page, Markdown, a brief for a reviewer."""
