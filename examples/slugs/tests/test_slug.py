"""What a slug is made of."""

import unittest

from slugs import slug


class TestSlug(unittest.TestCase):
    def test_words_are_joined_by_dashes(self) -> None:
        self.assertEqual(slug("Hello, World!"), "hello-world")

    def test_nothing_stands_at_the_ends(self) -> None:
        self.assertEqual(slug("  (draft) "), "draft")
