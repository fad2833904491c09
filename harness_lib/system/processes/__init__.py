"""Processes: started, watched, told apart and ended, with everything that they started."""
