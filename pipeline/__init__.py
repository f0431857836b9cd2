"""Pipeline: finds shards, runs the questions on them, and gives the answers."""
