"""What a person starts: the command line, the doctor, the course's home, updates, the leaderboard."""
