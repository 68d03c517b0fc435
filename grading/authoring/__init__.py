"""From sources to what learners get, and the proof that solutions pass and wrong answers fail."""
