"""The program itself: how it is started again, and the packages that it runs with."""
