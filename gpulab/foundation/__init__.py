"""What every other package stands on: errors that speak to a person, and how results are shown."""
