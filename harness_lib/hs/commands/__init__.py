"""The words behind `hs`, one file each."""
