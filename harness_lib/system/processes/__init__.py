"""Processes: started, watched, identified, and ended with everything that they started."""
