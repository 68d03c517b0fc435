"""From a notebook to verdicts: the sandbox, what is recorded in it, and the judge that replays it."""
