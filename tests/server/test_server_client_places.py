"""Where clients keep their servers: each platform, variables, several installations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.client_files import machine

from toolsrv.clients.known import CLIENTS
from toolsrv.clients.places import System

PLACES: Mapping[str, tuple[str, str, str]] = {
    "claude-desktop": (
        ".config/Claude/claude_desktop_config.json",
        "Library/Application Support/Claude/claude_desktop_config.json",
        "AppData/Roaming/Claude/claude_desktop_config.json",
    ),
    "claude-code": (".claude.json",) * 3,
    "cursor": (".cursor/mcp.json",) * 3,
    "vs-code": (
        ".config/Code/User/mcp.json",
        "Library/Application Support/Code/User/mcp.json",
        "AppData/Roaming/Code/User/mcp.json",
    ),
    "lm-studio": (".lmstudio/mcp.json",) * 3,
    "goose": (
        ".config/goose/config.yaml",
        ".config/goose/config.yaml",
        "AppData/Roaming/Block/goose/config/config.yaml",
    ),
    "codex": (".codex/config.toml",) * 3,
    "windsurf": (
        ".config/devin/mcp_config.json",
        ".config/devin/mcp_config.json",
        "AppData/Roaming/devin/mcp_config.json",
    ),
    "vs-code-insiders": (
        ".config/Code - Insiders/User/mcp.json",
        "Library/Application Support/Code - Insiders/User/mcp.json",
        "AppData/Roaming/Code - Insiders/User/mcp.json",
    ),
    "zed": (
        ".config/zed/settings.json", ".config/zed/settings.json", "AppData/Roaming/Zed/settings.json",
    ),
    "cline": (".cline/data/settings/cline_mcp_settings.json",) * 3,
    "gemini": (".gemini/settings.json",) * 3,
    "qwen": (".qwen/settings.json",) * 3,
    "antigravity": (".gemini/config/mcp_config.json",) * 3,
    "copilot": (".copilot/mcp-config.json",) * 3,
    "jan": (
        ".local/share/Jan/data/mcp_config.json",
        "Library/Application Support/Jan/data/mcp_config.json",
        "AppData/Roaming/Jan/data/mcp_config.json",
    ),
    "anythingllm": (
        ".config/anythingllm-desktop/storage/plugins/anythingllm_mcp_servers.json",
        "Library/Application Support/anythingllm-desktop/storage/plugins/anythingllm_mcp_servers.json",
        "AppData/Roaming/anythingllm-desktop/storage/plugins/anythingllm_mcp_servers.json",
    ),
    "warp": (".warp/.mcp.json",) * 3,
    "junie": (".junie/mcp/mcp.json",) * 3,
    "kiro": (".kiro/settings/mcp.json",) * 3,
    "amazon-q": (".aws/amazonq/mcp.json",) * 3,
    "opencode": (".config/opencode/opencode.json",) * 3,
}  # fmt: skip
SYSTEMS: tuple[System, ...] = ("linux", "darwin", "win32")
ROO = "User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"


@pytest.mark.parametrize("client", PLACES)
def test_each_client_keeps_its_servers_where_it_says(client: str, tmp_path: Path) -> None:
    found = [CLIENTS[client].path(machine(tmp_path, one)) for one in SYSTEMS]
    assert [one.relative_to(tmp_path).as_posix() for one in found] == list(PLACES[client])


@pytest.mark.parametrize(
    ("client", "variable", "place"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("goose", "GOOSE_PATH_ROOT", "config/config.yaml"),
        ("cline", "CLINE_MCP_SETTINGS_PATH", ""),
        ("cline", "CLINE_DATA_DIR", "settings/cline_mcp_settings.json"),
        ("cline", "CLINE_DIR", "data/settings/cline_mcp_settings.json"),
        ("copilot", "COPILOT_HOME", "mcp-config.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("qwen", "QWEN_HOME", "settings.json"),
        ("kiro", "KIRO_HOME", "settings/mcp.json"),
        ("opencode", "OPENCODE_CONFIG", ""),
        ("opencode", "OPENCODE_CONFIG_DIR", "opencode.json"),
        ("zed", "XDG_CONFIG_HOME", "zed/settings.json"),
        ("windsurf", "XDG_CONFIG_HOME", "devin/mcp_config.json"),
        ("jan", "XDG_DATA_HOME", "Jan/data/mcp_config.json"),
        ("goose", "XDG_CONFIG_HOME", "goose/config.yaml"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("vs-code", "APPDATA", "Code/User/mcp.json"),
    ],
)
def test_a_variable_moves_a_file(client: str, variable: str, place: str, tmp_path: Path) -> None:
    system: System = "win32" if variable == "APPDATA" else "linux"
    at = machine(tmp_path, system, **{variable: str(tmp_path / "moved")})
    assert CLIENTS[client].path(at) == tmp_path / "moved" / place


def test_lm_studio_says_itself_where_its_home_is(tmp_path: Path) -> None:
    client, at = CLIENTS["lm-studio"], machine(tmp_path)
    assert client.path(at) == tmp_path / ".lmstudio" / "mcp.json"
    (tmp_path / ".cache" / "lm-studio").mkdir(parents=True)
    assert client.path(at) == tmp_path / ".cache" / "lm-studio" / "mcp.json"
    (tmp_path / ".lmstudio-home-pointer").write_text(f"{tmp_path / 'studio'}\n", "utf-8")
    assert client.path(at) == tmp_path / "studio" / "mcp.json"


def test_roo_is_in_each_editor_that_has_it(tmp_path: Path) -> None:
    at, config = machine(tmp_path), tmp_path / ".config"
    assert CLIENTS["roo"].paths(at) == (config / "Code" / ROO,)
    assert not CLIENTS["roo"].found(at)
    for editor in ("Code - Insiders", "VSCodium"):
        (config / editor / ROO).parent.mkdir(parents=True)
    assert CLIENTS["roo"].paths(at) == (config / "Code - Insiders" / ROO, config / "VSCodium" / ROO)
    assert CLIENTS["roo"].found(at)


def test_a_commented_file_of_opencode_is_taken_where_it_is_there(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.jsonc").write_text("{} // mine\n", "utf-8")
    assert CLIENTS["opencode"].path(machine(tmp_path)) == folder / "opencode.jsonc"


@pytest.mark.parametrize("folder", [".cline", ".junie", ".kiro"])
def test_a_client_is_found_by_its_own_folder(folder: str, tmp_path: Path) -> None:
    client = CLIENTS[folder.removeprefix(".")]
    assert not client.found(machine(tmp_path))
    (tmp_path / folder).mkdir()
    assert client.found(machine(tmp_path))


PACKAGE = "AppData/Local/Packages/Claude_pzs8sxrjxfjjc"
INSIDE = "LocalCache/Roaming/Claude/claude_desktop_config.json"
INSTALLED = "AppData/Roaming/Claude/claude_desktop_config.json"


@pytest.mark.parametrize(
    ("folders", "files"),
    [
        ([], [INSTALLED]),
        (["AppData/Roaming/Claude"], [INSTALLED]),
        ([PACKAGE], [f"{PACKAGE}/{INSIDE}"]),
        (
            [PACKAGE, "AppData/Roaming/Claude"],
            [f"{PACKAGE}/{INSIDE}", INSTALLED],
        ),
        (
            ["AppData/Local/Packages/Claude_b", "AppData/Local/Packages/Claude_a"],
            [f"AppData/Local/Packages/Claude_{one}/{INSIDE}" for one in "ab"],
        ),
        (["AppData/Local/Packages/Other_a"], [INSTALLED]),
    ],
)
def test_every_installation_of_claude_desktop_on_windows_has_its_file(
    folders: list[str], files: list[str], tmp_path: Path
) -> None:
    for one in folders:
        (tmp_path / one).mkdir(parents=True)
    client, at = CLIENTS["claude-desktop"], machine(tmp_path, "win32")
    assert [one.relative_to(tmp_path).as_posix() for one in client.paths(at)] == files
    assert client.found(at) is any("Claude" in one for one in folders)
    assert client.paths(machine(tmp_path)) == (client.path(machine(tmp_path)),)


def test_localappdata_moves_the_packages(tmp_path: Path) -> None:
    (tmp_path / "L" / "Packages" / "Claude_x").mkdir(parents=True)
    at = machine(tmp_path, "win32", LOCALAPPDATA=str(tmp_path / "L"))
    path = CLIENTS["claude-desktop"].path(at)
    assert path == tmp_path / "L" / "Packages" / "Claude_x" / INSIDE
