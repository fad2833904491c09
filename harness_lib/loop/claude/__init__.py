"""The provider `claude`: it hands a whole turn to the installed Claude Code, with its login."""
