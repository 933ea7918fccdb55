"""What goes over HTTP: questions as pydantic models, answers as typed dicts."""
