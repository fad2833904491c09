"""The program itself: started again as a child, and its private packages."""
