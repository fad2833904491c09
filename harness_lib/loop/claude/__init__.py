"""The provider `claude`: a whole turn is handed to the installed Claude Code, with its login."""
