"""What repository.py promises: the right one is found, it answers, and nothing is written over."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import pytest

from harness_lib.errors import EnvSetupError
from harness_lib.system.git import clones, history, status, trees, worktrees
from harness_lib.system.git.calls import GitError, clean_env
from harness_lib.system.git.repository import Git
from tests.system.git.gitrepo import NASTY, World, commit_all, conflict, put, sh


def test_a_failing_command_says_which_and_why(world: World) -> None:
    with pytest.raises(GitError, match="cat-file") as caught:
        world.git.run("cat-file", "-p", "nonsense")
    assert caught.value.returncode == 128
    assert caught.value.exit_code == 7
    assert "nonsense" in caught.value.stderr


def test_a_failure_names_the_command_without_the_settings_of_harness(repo: Path) -> None:
    with pytest.raises(GitError) as caught:
        Git.open(repo).run(
            "-c", "core.splitIndex=false", "-c", "core.x=y", "rev-parse", "--verify", "x" * 900
        )

    assert str(caught.value).startswith("`git rev-parse --verify xxx")
    assert "…` failed with 128: fatal: Needed a single revision" in str(caught.value)


def test_changes_tells_tracked_from_untracked_whatever_the_names(world: World) -> None:
    for name in NASTY:
        world.put(f"t/{name}", "x")
    world.commit()
    for name in NASTY:
        world.put(f"t/{name}", "changed")
        world.put(f"u/{name}", "new")
    changes = status.changes(world.git)
    assert set(changes.tracked) == {f"t/{name}" for name in NASTY}
    assert set(changes.untracked) == {f"u/{name}" for name in NASTY}


def test_changes_leaves_out_files_and_directories_but_not_their_namesakes(world: World) -> None:
    for name in ("keep", "keep.txt", ".harness/log", ".harness-not/ours", "sub/keep"):
        world.put(name, "x")
    world.put("tracked.txt", "changed")
    changes = status.changes(world.git, ("keep", ".harness", "tracked.txt", "sub/keep/below"))
    assert changes.tracked == ()
    assert set(changes.untracked) == {"keep.txt", ".harness-not/ours", "sub/keep"}


def test_changes_ignores_what_git_ignores_and_reports_modes_deletions_and_renames(world: World) -> None:
    world.put(".git/info/exclude", "*.log\n")
    world.put("a.log", "x")
    (world.top / "tracked.txt").chmod(0o755)
    assert status.changes(world.git).tracked == ("tracked.txt",)
    (world.top / "tracked.txt").rename(world.top / "b.log")
    assert status.changes(world.git) == (("tracked.txt",), ())
    world.sh("restore", "tracked.txt")
    world.sh("mv", "tracked.txt", "renamed.txt")
    assert set(status.changes(world.git).tracked) == {"tracked.txt", "renamed.txt"}
    assert status.changes(world.git).untracked == ()


@pytest.mark.parametrize("how", ["merge", "rebase", "cherry-pick", "revert", "am"])
def test_what_is_under_way_is_named_and_can_be_forgotten_without_touching_files(
    world: World, how: str
) -> None:
    conflict(world)
    patch = world.top.parent / "patch"
    patch.write_text(world.sh("format-patch", "-1", "--stdout", "theirs") + "\n")
    arguments = {"am": [str(patch)], "revert": ["--no-edit", "HEAD~1"]}.get(how, ["theirs"])
    world.sh(how, *arguments, check=False)
    if how == "revert" and status.under_way(world.git) is None:
        pytest.skip("this git reverts without a conflict")
    assert status.under_way(world.git) == how
    assert len(status.merge_heads(world.git)) == (how == "merge")
    content = (world.top / "tracked.txt").read_bytes()
    head = world.git.head()
    assert status.quit_under_way(world.git) == how
    assert status.under_way(world.git) is None
    assert world.git.head() == head
    assert (world.top / "tracked.txt").read_bytes() == content


def test_a_bisect_ends_where_head_stands(world: World) -> None:
    for number in range(4):
        world.commit(files={"tracked.txt": f"{number}\n"})
    world.sh("bisect", "start", "HEAD", "HEAD~4")
    head = world.git.head()
    world.put("tracked.txt", "changed\n")
    assert status.quit_under_way(world.git) == "bisect"
    assert status.under_way(world.git) is None
    assert world.git.head() == head
    assert world.read("tracked.txt") == "changed\n"


def test_head_and_branch_before_the_first_commit_and_detached(world: World, tmp_path: Path) -> None:
    sh(tmp_path, "init", "-q", "-b", "main", "two\nlines")
    new = Git.open(tmp_path / "two\nlines")
    assert new.top == tmp_path / "two\nlines"
    assert (new.head(), new.branch()) == (None, "refs/heads/main")
    assert new.recent(5) == []
    assert history.commits(new, f"{'0' * 40}..HEAD") == ()
    world.sh("checkout", "-q", "--detach")
    assert (world.git.head(), world.git.branch()) == (world.base, None)


def test_a_repository_is_found_whose_last_commit_a_power_cut_has_emptied(world: World) -> None:
    world.commit("second", files={"tracked.txt": "two\n"})
    head = world.sh("rev-parse", "HEAD")
    for oid in (world.sh("rev-parse", "HEAD^{tree}"), head):
        file = world.git.common_dir / "objects" / oid[:2] / oid[2:]
        file.unlink()
        file.touch()
        assert Git.open(world.git.top) == world.git
    assert world.git.head() == head


def test_exists_is_about_commits_and_object_exists_about_anything(world: World) -> None:
    tree = world.git.tree_of(world.base)
    assert world.git.exists(world.base)
    assert not world.git.exists(tree)
    assert not world.git.exists("1" * 40)
    assert world.git.object_exists(tree)
    assert not world.git.object_exists("1" * 40)


def test_commits_since_gives_whole_messages_newest_first(world: World) -> None:
    base = world.base
    world.commit("first\n\nbody\nof it")
    world.commit("second ü")
    assert [commit.message for commit in history.commits(world.git, f"{base}..HEAD")] == [
        "second ü",
        "first\n\nbody\nof it",
    ]
    assert history.commits(world.git, f"{'1' * 40}..HEAD") == ()
    assert world.git.is_ancestor(base, "HEAD")
    assert not world.git.is_ancestor("HEAD", base)
    assert [line.partition(" ")[2] for line in world.git.recent(2)] == ["second ü", "first"]


def test_only_a_line_feed_ends_a_line_of_git(world: World) -> None:
    """Python breaks lines at a form feed, a vertical tab and U+2028, too."""
    world.commit("one\x0ctwo\x0bthree\u2028four")
    world.put("tracked.txt", "two\n")
    world.sh("stash", "push", "-m", "set\x0caside")
    assert len(world.git.recent(9)) == 2
    assert len(world.git.lines("stash", "list")) == 1


def test_is_tracked_takes_names_literally(world: World) -> None:
    world.put("*", "x")
    assert world.git.is_tracked(world.top / "tracked.txt")
    assert world.git.is_tracked(Path("dir/inner.txt"))
    assert not world.git.is_tracked(world.top / "*")
    assert not world.git.is_tracked(world.top.parent / "elsewhere")


def test_a_checkout_that_core_bare_hides_is_found_and_worked_in(world: World) -> None:
    """An agent may set it between any two of our steps."""
    world.put("tracked.txt", "changed")
    world.sh("config", "core.bare", "true")

    assert status.changes(world.git).tracked == ("tracked.txt",)
    assert Git.open(world.top) == world.git
    (world.top / "sub").mkdir()
    assert Git.open(world.top / "sub") == world.git


def test_a_work_tree_elsewhere_that_cannot_be_looked_at_is_not_inside(world: World) -> None:
    """As one of root's."""
    for name in ("inside", "elsewhere"):
        world.sh("worktree", "add", "-q", "--detach", name)
    # The system refuses this name in another way than a missing one.
    put(world.git.common_dir / "worktrees/elsewhere/gitdir", f"/{'x' * 300}/.git\n")
    assert status.work_trees_inside(world.git) == ["inside"]


@pytest.mark.parametrize("how", ["--merge", "--apply"])
@pytest.mark.parametrize("place", ["top", "linked", "apart"])
def test_a_branch_that_is_being_rebased_has_its_work_tree(
    world: World, tmp_path: Path, how: str, place: str
) -> None:
    """Git lists it as detached, and moves the branch when the rebase ends."""
    if place == "apart":
        world.sh("init", "-q", "--separate-git-dir", str(tmp_path / "git directory"))
    git = Git.open(world.top)
    world.sh("branch", "side")
    world.commits("Main", {"tracked.txt": "main\n"})
    linked = tmp_path / "linked tree" if place == "linked" else world.top
    world.sh(
        *(("worktree", "add", "-q", str(linked), "side") if place == "linked" else ("switch", "-q", "side")),
    )
    commit_all(linked, "Side", {"tracked.txt": "side\n"})

    sh(linked, "rebase", how, "main", check=False)

    assert worktrees.holder(git, "refs/heads/side") == linked
    if place == "linked":
        linked.rename(tmp_path / "away")
        assert worktrees.holder(git, "refs/heads/side") is None
        (tmp_path / "away").rename(linked)
    sh(linked, "rebase", "--abort")
    assert worktrees.holder(git, "refs/heads/side") == linked


@pytest.mark.parametrize("settings", ["--local", "--worktree", "--file=.git/included"])
def test_core_bare_is_seen_whenever_it_is_set(world: World, settings: str) -> None:
    world.sh("config", "extensions.worktreeConfig", "true")
    world.sh("config", "include.path", "included")

    for value in ("false", "true", "false"):
        world.sh("config", settings, "core.bare", value)
        assert worktrees.is_bare(world.git) is (value == "true")


@pytest.mark.parametrize("place", ["bare", "repo/.git/refs", "beside a bare one"])
def test_what_has_no_files_of_its_own_is_no_work_tree(world: World, tmp_path: Path, place: str) -> None:
    world.sh("clone", "-q", "--bare", ".", str(tmp_path / "bare"))
    world.sh("clone", "-q", "--bare", ".", str(tmp_path / "beside a bare one/.git"))

    with pytest.raises(EnvSetupError, match="is in a git directory or a bare repository"):
        Git.open(tmp_path / place)


# -- finding it


def test_clean_env_drops_locations_and_keeps_who_and_how() -> None:
    kept = {"GIT_AUTHOR_NAME": "A", "GIT_COMMITTER_EMAIL": "c@example.invalid", "EMAIL": "e@example.invalid"}
    kept |= {"GIT_SSH_COMMAND": "ssh -v", "GIT_CONFIG_GLOBAL": "/x", "PATH": "/bin"}
    names = (
        "DIR WORK_TREE INDEX_FILE OBJECT_DIRECTORY ALTERNATE_OBJECT_DIRECTORIES COMMON_DIR NAMESPACE PREFIX"
    )
    names += " CEILING_DIRECTORIES QUARANTINE_PATH LITERAL_PATHSPECS GLOB_PATHSPECS EXTERNAL_DIFF"
    dropped = {f"GIT_{name}": "x" for name in [*names.split(), "CONFIG_PARAMETERS"]}
    cleaned = clean_env({**kept, **dropped, "LC_ALL": "de_DE.UTF-8"})
    assert {name: cleaned.get(name) for name in kept} == kept
    assert not dropped.keys() & cleaned.keys()
    assert cleaned["LC_ALL"] == "C"
    assert cleaned["GIT_TERMINAL_PROMPT"] == "0"


def test_open_names_a_directory_that_is_gone_and_a_file(world: World) -> None:
    for place in (world.top / "gone", world.top / "tracked.txt"):
        with pytest.raises(EnvSetupError, match=place.name):
            Git.open(place)


def test_a_repository_that_git_does_not_trust_is_reported_with_gits_own_advice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.put(".git/config", b'[core]\n\trepositoryformatversion = 0\n\tbare = "false"\n')
    # git offers this switch to its own tests: every directory counts as somebody else's.
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setattr("harness_lib.system.git.calls.KEPT", ("GIT_",))
    with pytest.raises(EnvSetupError, match="does not trust") as caught:
        Git.open(world.top)
    assert "safe.directory" in (caught.value.hint or "")
    assert "fatal" not in (caught.value.hint or "")


def test_a_work_tree_whose_repository_was_moved_is_told_how_to_find_it_again(
    world: World, tmp_path: Path
) -> None:
    other, moved = tmp_path / "work tree", tmp_path / "moved"
    world.sh("worktree", "add", "-q", "--detach", str(other))
    world.top.rename(moved)
    with pytest.raises(EnvSetupError, match="which is not there") as caught:
        Git.open(other)
    _, _, hint = (caught.value.hint or "").partition(": ")
    sh(moved, *shlex.split(hint.removeprefix("git ")))
    assert Git.open(other).top == other


# -- commits, refs and excludes


def test_init_makes_a_first_commit_and_leaves_an_existing_one_alone(tmp_path: Path) -> None:
    git = Git.init(tmp_path)
    first = git.head()
    assert first
    assert trees.entries(git, first) == {}
    assert Git.init(tmp_path).head() == first


def test_a_half_identity_is_kept_and_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "config", "[user]\n\tuseConfigOnly = true\n\tname = Ada\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    git = Git.init(tmp_path)
    assert git.text("log", "-1", "--format=%an %ae") == "Ada harness@localhost"
    monkeypatch.setenv("EMAIL", "ada@example.invalid")
    oid = git.commit(git.tree_of("HEAD"), [], "m")
    assert git.text("log", "-1", "--format=%an %ae", oid) == "Ada ada@example.invalid", "as git reads it"


def test_what_gemini_hides_of_the_users_settings_counts(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gemini CLI (0.61.0) sets these for the commands of its agent."""
    rules = put(tmp_path / "rules", "*.swp\n")
    put(
        tmp_path / ".gitconfig",
        f"[user]\nname = Ada\nemail = ada@example.invalid\n[core]\nexcludesFile = {rules}\n",
    )
    put(world.top / "new.swp", "x")
    hidden = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for name, value in {"HOME": str(tmp_path), "GEMINI_CLI": "1", **hidden}.items():
        monkeypatch.setenv(name, value)

    oid = world.git.commit(world.git.tree_of("HEAD"), [world.base], "m")

    assert world.git.text("log", "-1", "--format=%an %ae", oid) == "Ada ada@example.invalid"
    assert "new.swp" not in world.git.text("ls-files", "--others", "--exclude-standard")


def test_an_identity_in_the_environment_wins(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody Else")
    oid = world.git.commit(world.git.tree_of("HEAD"), [world.base], "m")
    assert world.git.text("log", "-1", "--format=%an", oid) == "Somebody Else"


def test_refs_move_only_from_where_they_are_expected(world: World) -> None:
    git, second = world.git, world.git.commit(world.git.tree_of("HEAD"), [world.base], "second")
    git.set_ref("refs/harness/rescue/a/1", world.base, "")
    with pytest.raises(GitError):
        git.set_ref("refs/harness/rescue/a/1", second, "")
    with pytest.raises(GitError):
        git.set_ref("refs/harness/rescue/a/1", second, second)
    git.set_ref("refs/harness/rescue/a/1", second, world.base)
    assert git.refs("refs/harness") == [("refs/harness/rescue/a/1", second)]
    with pytest.raises(GitError):
        git.delete_ref("refs/harness/rescue/a/1", world.base)
    git.delete_ref("refs/harness/rescue/a/1", second)
    assert git.ref("refs/harness/rescue/a/1") is None


def test_a_ref_moves_only_while_another_one_is_where_it_has_to_be(world: World) -> None:
    git, second = world.git, world.git.commit(world.git.tree_of("HEAD"), [world.base], "second")
    moved, other = "refs/harness/moved", "refs/harness/other"
    with pytest.raises(GitError):
        git.set_ref(moved, second, "", only_while=(other, world.base))
    git.set_ref(moved, world.base, "", only_while=(other, ""))
    git.set_ref(other, second)
    with pytest.raises(GitError):
        git.set_ref(moved, second, world.base, only_while=(other, ""))
    with pytest.raises(GitError):
        git.set_ref(moved, second, second, only_while=(other, second))
    assert git.ref(moved) == world.base
    git.set_ref(moved, second, world.base, only_while=(other, second))
    assert git.ref(moved) == second
    git.delete_ref("refs/harness/rescue/a/1")


def test_exclude_adds_each_pattern_once_and_keeps_what_is_there(world: World) -> None:
    exclude = world.put(".git/info/exclude", "# mine\n*.o")
    world.git.exclude(["/.harness/", "*.o"])
    world.git.exclude(["/.harness/", "/log"])
    assert exclude.read_text() == "# mine\n*.o\n/.harness/\n/log\n"


def test_exclude_works_without_an_info_directory_and_reaches_a_linked_worktree(world: World) -> None:
    shutil.rmtree(world.top / ".git/info")
    linked = world.linked()
    linked.git.exclude(["/hidden"])
    linked.put("hidden")
    assert status.changes(linked.git).untracked == ()


def test_a_ref_and_what_is_stashed_are_the_same_loose_and_packed(world: World) -> None:
    world.put("tracked.txt", "stashed")
    world.sh("stash")
    names = ("HEAD", "refs/heads/a/b", "refs/harness/rescue/x/1", "refs/heads/none", "refs/harness/rescue")
    for name in names[1:3]:
        world.sh("update-ref", name, "HEAD")
    head = world.sh("rev-parse", "HEAD")
    for _ in ("loose", "packed"):
        assert [world.git.ref(name) for name in names] == [head, head, head, None, None]
        assert world.git.refs("refs/harness/rescue/") == [(names[2], head)]
        assert world.git.refs("refs/harness/resc") == []
        assert len(world.git.lines("stash", "list")) == 1
        world.sh("pack-refs", "--all", "--prune")


def test_the_tree_of_a_commit_is_the_one_that_git_replaces_it_with(world: World) -> None:
    tree = world.sh("rev-parse", "HEAD^{tree}")
    assert world.git.tree_of("HEAD^{}") == world.git.tree_of(tree) == tree
    world.sh("commit", "-q", "--allow-empty", "-m", "Again")
    world.sh("replace", "HEAD", world.git.commit(world.git.empty_tree(), (), "Another"))
    head = str(world.git.head())
    assert world.git.tree_of(head) == world.git.empty_tree()
    world.sh("replace", "-d", head)
    assert Git.open(world.git.top).tree_of(head) == tree


def test_the_head_of_a_clone_is_read_from_its_files_as_git_tells_it(world: World) -> None:
    git_dir, head = world.git.git_dir, world.git.head()
    assert clones.head_of(git_dir) == head
    world.sh("pack-refs", "--all", "--prune")
    assert clones.head_of(git_dir) == head
    world.sh("checkout", "-q", "--detach")
    assert clones.head_of(git_dir) == head
    (git_dir / "elsewhere").write_text(f"{head}\n", "ascii")
    (git_dir / "refs/heads/torn").write_text("", "ascii")
    (git_dir / "refs/heads/link").symlink_to(git_dir / "elsewhere")
    odd = [f"refs/heads/{name}" for name in ("unborn", "torn", "link", "../../elsewhere")]
    for text in ("", "0" * 39, "\0" * 40, *(f"ref: {name}" for name in (*odd, "elsewhere"))):
        (git_dir / "HEAD").write_text(f"{text}\n", "ascii")
        assert clones.head_of(git_dir) is None, text
    (git_dir / "HEAD").unlink()
    (git_dir / "HEAD").symlink_to("elsewhere")
    assert clones.head_of(git_dir) is None


def test_an_odd_ref_is_what_git_says_it_is(world: World) -> None:
    for leads in ("refs/heads/leads", "refs/remotes/o/HEAD"):
        world.sh("symbolic-ref", leads, "refs/heads/main")
    put(world.git.common_dir / "refs/heads/torn", "")
    below = ("main@{0}", "main^{tree}", "../heads/main", "leads", "torn", "none")
    odd = ("main", "HEAD^", "HEAD~1", "refs/heads", "refs/remotes/o/HEAD")
    for name in (*odd, *(f"refs/heads/{each}" for each in below)):
        told = world.sh("rev-parse", "--verify", "--quiet", name, check=False)
        assert world.git.ref(name) == (told or None), name
    linked = world.linked()
    linked.sh("commit", "-q", "--allow-empty", "-m", "There")
    linked.sh("update-ref", "refs/worktree/own", "HEAD")
    assert linked.git.ref("refs/worktree/own") == linked.sh("rev-parse", "HEAD")
    assert linked.git.branch() == "refs/heads/side"
    assert linked.git.head() == world.git.ref("refs/heads/side") == linked.sh("rev-parse", "HEAD")


def test_another_store_of_refs_is_left_to_git(world: World) -> None:
    """Few gits can make one yet, so its directory has to do."""
    (world.git.common_dir / "reftable").mkdir()
    world.sh("pack-refs", "--all", "--prune")
    assert world.git.ref("refs/heads/main") == world.sh("rev-parse", "refs/heads/main")
    put(world.git.common_dir / "HEAD", "ref: refs/heads/.invalid\n")
    assert world.git.branch() is None


@pytest.mark.parametrize("skips", [False, True], ids=["checksum", "no checksum"])
def test_marks_are_seen_that_somebody_sets_and_takes_back(world: World, *, skips: bool) -> None:
    # An older git knows nothing of it and makes a checksum, which is as well.
    world.sh("config", "index.skipHash", str(skips).lower())
    world.put("new.txt", "x")
    world.sh("add", "new.txt")
    for _ in range(2):
        assert status.marked(world.git) == ()
        world.sh("update-index", "--assume-unchanged", "tracked.txt")
        assert status.marked(world.git) == ("tracked.txt",)
        world.sh("update-index", "--no-assume-unchanged", "tracked.txt")


def test_a_link_or_a_file_in_the_place_of_a_work_tree_goes_and_what_it_leads_to_stays(
    world: World, tmp_path: Path
) -> None:
    place, kept = tmp_path / "place", put(tmp_path / "elsewhere/kept", "mine")
    place.symlink_to(kept.parent)
    put(worktrees.link(place), f"gitdir: {kept.parent}\n")
    worktrees.remove(world.git, place)
    assert not worktrees.link(place).exists()
    put(place, "a file\n")
    worktrees.remove(world.git, place)
    assert not place.exists()
    assert kept.read_text() == "mine"


def test_the_work_tree_of_a_worker_is_found_in_its_own_place_only(world: World, tmp_path: Path) -> None:
    place, other = tmp_path / "1", tmp_path / "2"
    made = worktrees.add(world.git, place, world.base)
    assert worktrees.at(world.git, place) == made
    shutil.copytree(place, other)
    shutil.copy(worktrees.link(place), worktrees.link(other))
    assert worktrees.at(world.git, other) is None, "it is a copy"
    shutil.rmtree(place)
    assert worktrees.at(world.git, place) is None
    place.symlink_to(other)
    assert worktrees.at(world.git, place) is None, "somebody has put a link in its place"
    place.unlink()
    other.rename(place)
    assert worktrees.at(world.git, place) == made
    shutil.rmtree(made.git_dir)
    assert worktrees.at(world.git, place) is None, "git knows no such work tree any more"


def test_a_half_made_work_tree_goes_where_it_is_ours_only(world: World, tmp_path: Path) -> None:
    places = tmp_path / "workers/ours", tmp_path / "theirs"
    for place in places:
        world.sh("worktree", "add", "-q", "--detach", str(place))
        put(world.git.common_dir / "worktrees" / place.name / "HEAD", f"{'0' * 40}\n")
    worktrees.drop_half_made(world.git, tmp_path / "workers")
    assert [place.exists() for place in places] == [False, True]
